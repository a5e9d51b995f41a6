import { useNavigate } from "@tanstack/react-router";
import { Copy, Hourglass, MoreHorizontal, PanelRight, Pencil, Route, Tag, Trash2 } from "lucide-react";
import type { Node } from "@/api";
import { printable, text } from "@/text";
import { announce, copyText, Menu, MenuItem, MenuLine, useWrites } from "@/ui";
import { useNodeActions } from "./actions";
import { ipv4Of, waitingRoutes } from "./facts";

/** What can be done with one node. */
export function NodeMenu({ node }: { node: Node }) {
  const t = text.nodes.actions;
  const navigate = useNavigate();
  const start = useNodeActions();
  const nodes = useWrites("nodes:write");
  const routes = useWrites("routes:write");
  const copy = async (value: string) => announce((await copyText(value)) ? text.common.copied : text.common.copyByHand);
  return (
    <Menu
      trigger={
        <button
          type="button"
          aria-label={text.common.actionsFor(printable(node.givenName))}
          className="inline-grid size-8 place-items-center rounded-md text-ink-2 hover:bg-sunken hover:text-ink data-[state=open]:bg-sunken"
        >
          <MoreHorizontal className="size-4" aria-hidden />
        </button>
      }
    >
      <MenuItem icon={PanelRight} onSelect={() => void navigate({ to: "/nodes/$id", params: { id: node.id } })}>
        {t.open}
      </MenuItem>
      <MenuItem icon={Copy} onSelect={() => void copy(ipv4Of(node))}>
        {t.copyAddress}
      </MenuItem>
      {nodes.offered && (
        <>
          <MenuLine />
          <MenuItem icon={Pencil} keyHint="e" disabled={!nodes.now} onSelect={() => start({ name: "rename", node })}>
            {t.rename}
          </MenuItem>
          <MenuItem icon={Tag} keyHint="t" disabled={!nodes.now} onSelect={() => start({ name: "tags", node })}>
            {t.tags}
          </MenuItem>
        </>
      )}
      {routes.offered && nodes.offered && waitingRoutes(node).length > 0 && (
        <MenuItem icon={Route} disabled={!routes.now} onSelect={() => start({ name: "approve", nodes: [node] })}>
          {t.approve}
        </MenuItem>
      )}
      {nodes.offered && (
        <>
          <MenuLine />
          {!node.expired && (
            <MenuItem icon={Hourglass} disabled={!nodes.now} onSelect={() => start({ name: "expire", nodes: [node] })}>
              {t.expire}
            </MenuItem>
          )}
          <MenuItem
            icon={Trash2}
            danger
            keyHint="Del"
            disabled={!nodes.now}
            onSelect={() => start({ name: "delete", nodes: [node] })}
          >
            {t.delete}
          </MenuItem>
        </>
      )}
    </Menu>
  );
}
