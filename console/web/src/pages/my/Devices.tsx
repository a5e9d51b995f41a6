import { clsx } from "clsx";
import { Copy, LogOut, Network, Pencil, Trash2 } from "lucide-react";
import { useState } from "react";
import { type Node, useNodes } from "@/api";
import { ipv4Of, ipv6Of, NodeMark, OsIcon, useNodeActions } from "@/nodes";
import { printable } from "@/text";
import { myWords } from "@/text/my";
import {
  Badge,
  Button,
  CopyButton,
  copyAloud,
  Empty,
  ErrorState,
  LoadingLines,
  MenuItem,
  MenuLine,
  RowMenu,
  Section,
  Time,
  Tip,
  useWrites,
} from "@/ui";
import { DeviceAccess } from "./DeviceAccess";
import { devicesOf } from "./facts";

const t = myWords.devices;

export function Devices({ person }: { person: string }) {
  const { data, error, refetch } = useNodes();
  const own = data && devicesOf(data.items, person);
  const [shown, setShown] = useState<Node | null>(null);
  return (
    <Section title={t.title} note={own?.length}>
      {own ? (
        own.length === 0 ? (
          <Empty title={t.emptyTitle}>{t.emptyBody}</Empty>
        ) : (
          <ul aria-label={t.list}>
            {own.map((node) => (
              <Device key={node.id} node={node} onAccess={() => setShown(node)} />
            ))}
          </ul>
        )
      ) : error ? (
        <ErrorState title={t.failed} error={error} onRetry={() => void refetch()} />
      ) : (
        <LoadingLines widths={["w-64", "w-48", "w-56"]} className="space-y-4 p-4" />
      )}
      {shown && <DeviceAccess node={shown} onClose={() => setShown(null)} />}
    </Section>
  );
}

function Device({ node, onAccess }: { node: Node; onAccess(): void }) {
  const name = printable(node.givenName);
  return (
    <li className="flex items-center gap-3 border-b border-hair px-4 py-3 last:border-b-0">
      <span className="grid size-8 shrink-0 place-items-center rounded-full bg-chip">
        <OsIcon os={node.os} />
      </span>
      <div className="min-w-0 flex-1">
        <div className="flex min-w-0 flex-wrap items-center gap-x-2 gap-y-1">
          <span className="truncate text-14 font-medium">{name}</span>
          <DeviceBadge node={node} />
        </div>
        <div className="flex flex-wrap items-center gap-x-4 text-12 text-ink-2">
          <span className="flex items-center gap-1.5">
            <NodeMark node={node} />
            {node.online && !node.expired ? t.online : <Time at={node.lastSeen} format={t.seen} />}
          </span>
          <Address value={ipv4Of(node)} />
          <Address value={ipv6Of(node)} className="max-sm:hidden" />
          {node.expiry ? (
            <Time
              at={node.expiry}
              format={node.expired ? t.expired : t.expires}
              className={node.expired ? "text-bad" : undefined}
            />
          ) : (
            <span>{t.never}</span>
          )}
        </div>
      </div>
      <Button look="ghost" aria-label={myWords.actions.accessOf(name)} onClick={onAccess} className="max-sm:hidden">
        {myWords.actions.access}
      </Button>
      <DeviceMenu node={node} onAccess={onAccess} />
    </li>
  );
}

function Address({ value, className }: { value: string; className?: string }) {
  return (
    value && (
      <span className={clsx("flex items-center font-mono", className)}>
        {value}
        <CopyButton value={value} what={value} />
      </span>
    )
  );
}

/** Why the device has no access, and what to do about it. */
function DeviceBadge({ node }: { node: Node }) {
  if (!node.needsApproval && !node.expired) return null;
  const [tone, tip, words] = node.needsApproval
    ? (["warn", t.approvalTip, t.badges.approval] as const)
    : (["bad", t.expiredTip, t.badges.expired] as const);
  return (
    <Tip label={tip}>
      <span>
        <Badge tone={tone}>{words}</Badge>
      </span>
    </Tip>
  );
}

function DeviceMenu({ node, onAccess }: { node: Node; onAccess(): void }) {
  const words = myWords.actions;
  const start = useNodeActions();
  // Everyone may change their own devices, whatever their role; only the connection matters.
  const { why } = useWrites("nodes:read");
  return (
    <RowMenu name={printable(node.givenName)}>
      <MenuItem icon={Network} onSelect={onAccess}>
        {words.access}
      </MenuItem>
      <MenuItem icon={Copy} onSelect={() => void copyAloud(ipv4Of(node))}>
        {words.copyAddress}
      </MenuItem>
      <MenuLine />
      <MenuItem icon={Pencil} why={why} onSelect={() => start({ name: "rename", node })}>
        {words.rename}
      </MenuItem>
      {!node.expired && (
        <MenuItem icon={LogOut} why={why} onSelect={() => start({ name: "expire", nodes: [node] })}>
          {words.expire}
        </MenuItem>
      )}
      <MenuItem icon={Trash2} danger why={why} onSelect={() => start({ name: "delete", nodes: [node] })}>
        {words.delete}
      </MenuItem>
    </RowMenu>
  );
}
