import { Link } from "@tanstack/react-router";
import { Network } from "lucide-react";
import { useCallback } from "react";
import type { AccessRow } from "@/access";
import type { AccessMap, AccessPrincipal } from "@/api";
import { accessMap as t } from "@/text/access";
import { Empty, linkButton, Skeleton } from "@/ui";
import type { accessColumns } from "./columns";
import { Flow } from "./Flow";
import { MapTable } from "./MapTable";
import { Matrix } from "./Matrix";
import { NodeChooser } from "./NodeChooser";
import type { Search, SetSearch, View } from "./search";

/** The map in the selected view. */
export function Body({
  map,
  rows,
  shown,
  view,
  search,
  setSearch,
  onOpen,
  columns,
  clear,
}: {
  map: AccessMap;
  rows: readonly AccessRow[];
  shown: readonly AccessRow[];
  view: View;
  search: Search;
  setSearch: SetSearch;
  onOpen(from: AccessPrincipal, to: AccessPrincipal): void;
  columns: ReturnType<typeof accessColumns>;
  clear(): void;
}) {
  const openRow = useCallback((row: AccessRow) => onOpen(row.from, row.to), [onOpen]);
  if (view === "matrix") return <Matrix map={map} rows={rows} open={search.cell} onOpen={onOpen} />;
  if (view === "flow")
    return (
      <Flow
        rows={rows}
        chooser={<NodeChooser value={search.node} onChange={(node) => setSearch({ node, focus: "" }, "push")} />}
        chosen={search.node !== ""}
        focus={search.focus}
        onFocus={(focus) => setSearch(focus ? { focus } : { focus, node: "" }, "push")}
        openRule={search.rule}
        onOpenRule={(rule) => setSearch({ rule, cell: "" }, "push")}
      />
    );
  return (
    <MapTable
      rows={shown}
      columns={columns}
      search={search}
      onSort={(sort) => setSearch({ sort })}
      onOpen={openRow}
      onClear={clear}
      loading={false}
    />
  );
}

export const Nothing = () => (
  <Empty
    icon={Network}
    title={t.emptyTitle}
    action={
      <Link to="/policy" className={linkButton()}>
        {t.openPolicy}
      </Link>
    }
  >
    {t.emptyBody}
  </Empty>
);

export const Waiting = () => (
  <div className="flex-1 space-y-5 bg-surface p-6">
    {[0, 1, 2, 3, 4, 5].map((i) => (
      <div key={i} className="flex gap-4">
        <Skeleton className="w-40" />
        <Skeleton className="w-20" />
        <Skeleton className="w-20" />
        <Skeleton className="w-20" />
      </div>
    ))}
  </div>
);
