import { Link } from "@tanstack/react-router";
import { Network } from "lucide-react";
import { useCallback, useMemo } from "react";
import { type AccessRow, rowsOf } from "@/access";
import type { AccessMap, AccessPrincipal } from "@/api";
import { accessView, accessMap as t } from "@/text/access";
import { Button, Empty, linkButton, Skeleton } from "@/ui";
import type { accessColumns } from "./columns";
import { Flow } from "./Flow";
import { Legend } from "./Legend";
import { MapTable } from "./MapTable";
import { Matrix } from "./Matrix";
import { NodeChooser } from "./NodeChooser";
import type { Search, SetSearch, View } from "./search";
import { combined, connectedFirst, hasManyRoutes, withoutManyRoutes } from "./tidyMap";

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
  byNodes,
  draft,
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
  /** Whether the map lists each node. */
  byNodes: boolean;
  /** Whether the map shows what a draft changes. */
  draft: boolean;
}) {
  const openRow = useCallback((row: AccessRow) => onOpen(row.from, row.to), [onOpen]);
  const each = search.routes === "all";
  const drawn = useMemo(() => {
    const fewer = each ? map : withoutManyRoutes(map);
    return byNodes ? connectedFirst(fewer) : fewer;
  }, [map, each, byNodes]);
  const drawnRows = useMemo(() => (drawn === map ? rows : rowsOf(drawn)), [drawn, map, rows]);
  const expand = useCallback(() => setSearch({ routes: each ? "" : "all" }), [setSearch, each]);
  const openCell = useCallback(
    (from: AccessPrincipal, to: AccessPrincipal) =>
      from.kind === combined || to.kind === combined ? expand() : onOpen(from, to),
    [onOpen, expand],
  );
  const routes = view !== "table" && hasManyRoutes(map) && !search.node && (
    <Routes each={each} onToggle={expand} count={Math.max(countOf(map.from), countOf(map.to))} />
  );
  if (view === "matrix")
    return (
      <>
        <Matrix map={drawn} rows={drawnRows} open={search.cell} onOpen={openCell} />
        <Legend view="matrix" draft={draft}>
          {byNodes && <span>{accessView.matrix.connectedFirst}</span>}
          {routes}
        </Legend>
      </>
    );
  if (view === "flow")
    return (
      <>
        <Flow
          // The rows of a selected node come from a separate query, not from the map.
          rows={search.node ? rows : drawnRows}
          chooser={<NodeChooser value={search.node} onChange={(node) => setSearch({ node, focus: "" }, "push")} />}
          chosen={search.node !== ""}
          focus={search.focus}
          onFocus={(focus) => setSearch(focus ? { focus } : { focus, node: "" }, "push")}
          openRule={search.rule}
          onOpenRule={(rule) => setSearch({ rule, cell: "" }, "push")}
          all={search.paths === "all"}
          onAll={(all) => setSearch({ paths: all ? "all" : "" })}
          onExpand={expand}
        />
        <Legend view="flow" draft={draft}>
          {routes}
        </Legend>
      </>
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

const countOf = (side: readonly AccessPrincipal[]) => side.filter(({ kind }) => kind === "route").length;

/** Says that networks are combined, with a button to change that. */
function Routes({ each, count, onToggle }: { each: boolean; count: number; onToggle(): void }) {
  const t = accessView.routes;
  return (
    <span className="inline-flex items-center gap-2">
      {!each && t.collapsed(count)}
      <Button look="ghost" className="-my-1 h-7!" onClick={onToggle}>
        {each ? t.collapse : t.expand}
      </Button>
    </span>
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
