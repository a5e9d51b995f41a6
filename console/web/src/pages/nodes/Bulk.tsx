import { CircleCheck, Hourglass, Route, Tag, Trash2, UserPen } from "lucide-react";
import type { Node } from "@/api";
import { type Selection, useChosen } from "@/list";
import { useApproveNodes, type useNodeActions, waitingRoutes } from "@/nodes";
import { useTurnRoutes } from "@/routes";
import { text } from "@/text";
import { owner } from "@/text/ownership";
import { BulkBar, Button, type Column, ExportMenu, useWrites } from "@/ui";

const t = text.nodes;

/** Bulk actions on the selected nodes. */
export function Bulk({
  list,
  nodes,
  rows,
  files,
  start,
}: {
  list: Selection;
  nodes: readonly Node[];
  rows: readonly Node[];
  files: readonly Column<Node>[];
  start: ReturnType<typeof useNodeActions>;
}) {
  const { offered, why } = useWrites("nodes:write");
  const routes = useWrites("routes:write");
  const turn = useTurnRoutes();
  const approve = useApproveNodes();
  const { chosen, bar } = useChosen(list, nodes, rows);
  const unapproved = chosen.filter((node) => node.needsApproval);
  const waiting = chosen.some((node) => waitingRoutes(node).length > 0);
  const act = (name: "addTags" | "owners" | "expire" | "delete") => () => start({ name, nodes: chosen });
  return (
    <BulkBar label={t.title} {...bar}>
      {offered && (
        <>
          {unapproved.length > 0 && (
            <Button look="ghost" icon={CircleCheck} why={why} onClick={() => approve(unapproved)}>
              {t.bulk.approveNodes}
            </Button>
          )}
          <Button look="ghost" icon={Tag} why={why} onClick={act("addTags")}>
            {t.bulk.tags}
          </Button>
          {chosen.some((node) => node.tags.length === 0) && (
            <Button look="ghost" icon={UserPen} why={why} onClick={act("owners")}>
              {owner.change}
            </Button>
          )}
          {routes.offered && waiting && (
            <Button
              look="ghost"
              icon={Route}
              why={why}
              onClick={() => turn(true, (row) => list.selected.has(row.node.id))}
            >
              {t.bulk.approve}
            </Button>
          )}
          <Button look="ghost" icon={Hourglass} why={why} onClick={act("expire")}>
            {t.bulk.expire}
          </Button>
        </>
      )}
      <ExportMenu what="nodes" columns={files} rows={chosen} selected />
      {offered && (
        <Button look="ghost-danger" icon={Trash2} why={why} onClick={act("delete")}>
          {t.bulk.delete}
        </Button>
      )}
    </BulkBar>
  );
}
