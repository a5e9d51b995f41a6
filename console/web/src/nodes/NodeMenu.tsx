import { useNavigate } from "@tanstack/react-router";
import {
  CalendarClock,
  CircleCheck,
  Copy,
  Hourglass,
  PanelRight,
  Pencil,
  Route,
  Tag,
  Trash2,
  UserPen,
} from "lucide-react";
import { type Node, useDNS } from "@/api";
import { useTurnRoutes } from "@/routes";
import { printable, text } from "@/text";
import { owner } from "@/text/ownership";
import { copyAloud, MenuItem, MenuLine, RowMenu, useWrites } from "@/ui";
import { useNodeActions } from "./actions";
import { useApproveNodes } from "./approval";
import { fullName, ipv4Of, waitingRoutes } from "./facts";

/** The actions on one node. `here` omits the link to the node's own page. */
export function NodeMenu({ node, here = false }: { node: Node; here?: boolean }) {
  return (
    <RowMenu name={printable(node.givenName)}>
      <Items node={node} here={here} />
    </RowMenu>
  );
}

/** Lists have a menu in each row, so the data for its items is requested only when it opens. */
function Items({ node, here }: { node: Node; here: boolean }) {
  const t = text.nodes.actions;
  const navigate = useNavigate();
  const start = useNodeActions();
  const turn = useTurnRoutes();
  const approve = useApproveNodes();
  const nodes = useWrites("nodes:write");
  const routes = useWrites("routes:write");
  const { data: dns } = useDNS();
  return (
    <>
      {!here && (
        <MenuItem icon={PanelRight} onSelect={() => void navigate({ to: "/nodes/$id", params: { id: node.id } })}>
          {t.open}
        </MenuItem>
      )}
      <MenuItem icon={Copy} onSelect={() => void copyAloud(ipv4Of(node))}>
        {t.copyAddress}
      </MenuItem>
      <MenuItem icon={Copy} onSelect={() => void copyAloud(fullName(node.givenName, dns?.data))}>
        {t.copyName}
      </MenuItem>
      {nodes.offered && (
        <>
          <MenuLine />
          {node.needsApproval && (
            <MenuItem icon={CircleCheck} why={nodes.why} onSelect={() => approve([node])}>
              {t.approveNode}
            </MenuItem>
          )}
          <MenuItem icon={Pencil} keyHint="e" why={nodes.why} onSelect={() => start({ name: "rename", node })}>
            {t.rename}
          </MenuItem>
          <MenuItem icon={Tag} keyHint="t" why={nodes.why} onSelect={() => start({ name: "tags", node })}>
            {t.tags}
          </MenuItem>
          {node.tags.length === 0 && (
            <MenuItem icon={UserPen} why={nodes.why} onSelect={() => start({ name: "owner", node })}>
              {owner.change}
            </MenuItem>
          )}
        </>
      )}
      {routes.offered && waitingRoutes(node).length > 0 && (
        <MenuItem icon={Route} why={routes.why} onSelect={() => turn(true, (row) => row.node.id === node.id)}>
          {t.approve}
        </MenuItem>
      )}
      {nodes.offered && (
        <>
          <MenuLine />
          <MenuItem icon={CalendarClock} why={nodes.why} onSelect={() => start({ name: "setExpiry", node })}>
            {t.setExpiry}
          </MenuItem>
          {!node.expired && (
            <MenuItem icon={Hourglass} why={nodes.why} onSelect={() => start({ name: "expire", nodes: [node] })}>
              {t.expire}
            </MenuItem>
          )}
          <MenuItem
            icon={Trash2}
            danger
            keyHint="Del"
            why={nodes.why}
            onSelect={() => start({ name: "delete", nodes: [node] })}
          >
            {t.delete}
          </MenuItem>
        </>
      )}
    </>
  );
}
