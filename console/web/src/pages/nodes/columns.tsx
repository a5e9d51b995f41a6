import { clsx } from "clsx";
import { CircleArrowUp, Timer } from "lucide-react";
import type { MouseEvent } from "react";
import type { Node } from "@/api";
import {
  type Around,
  attentionOf,
  type Hosts,
  ipv4Of,
  ipv6Of,
  NodeMark,
  OsIcon,
  Owner,
  ownerWords,
  Presence,
  RouteBadges,
  shortVersion,
  stateOf,
  systemName,
  waitingRoutes,
} from "@/nodes";
import { compareText, printable, text } from "@/text";
import { Badge, type Column, CopyButton, Flash, Time, Tip, textColumn } from "@/ui";

const t = text.nodes;
const time = (at: string | null) => (at ? Date.parse(at) : Number.POSITIVE_INFINITY);
/** Online nodes sort last, so that the nodes offline for the longest time come first. */
const seen = (node: Node) => (node.online ? Number.POSITIVE_INFINITY : Date.parse(node.lastSeen));
const soon = 14 * 864e5;

/** Columns with what devices report about themselves. */
export const hostColumns = ["relay", "nat"] as const;

/** In one word; the node's page has a full sentence. */
const natWord = (varies: boolean | null | undefined) => (varies == null ? "" : varies ? t.nat.hard : t.nat.easy);

export interface NodeFacts {
  hosts: Hosts | undefined;
  around: Around;
  newest: string;
  onOpen(node: Node): void;
}

/** A link with the node's name. It opens the node next to the list; in another tab it opens the node's page. */
export function NodeLink({ node, onOpen, className }: { node: Node; onOpen(node: Node): void; className: string }) {
  const open = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    onOpen(node);
  };
  return (
    // A router link would render again on every change of the URL: here, every row at every keystroke.
    <a href={`/admin/nodes/${node.id}`} onClick={open} className={className}>
      {printable(node.givenName)}
    </a>
  );
}

/** Why a node needs attention. It stays next to the name, whichever columns fit. */
export function Attention({ node, around }: { node: Node; around: Around }) {
  const why = attentionOf(node, around);
  const tone = why === "expired" || why === "offline" ? "bad" : "warn";
  return (
    why && (
      <Badge tone={tone} className="shrink-0">
        {t.attention[why]}
      </Badge>
    )
  );
}

export function nodeColumns({ hosts, around, newest, onOpen }: NodeFacts): Column<Node>[] {
  const { presence, now } = around;
  return [
    textColumn({
      id: "node",
      title: t.columns.node,
      fixed: true,
      least: 208,
      value: (node) => node.givenName,
      cell: (node) => (
        <span className="flex min-w-0 items-center gap-2.5">
          <Flash value={node.online} className="grid shrink-0 place-items-center rounded-full">
            <NodeMark node={node} />
          </Flash>
          <OsIcon os={node.os} />
          <Flash value={node.givenName} className="truncate rounded">
            <NodeLink node={node} onOpen={onOpen} className="font-medium hover:underline" />
          </Flash>
          {node.ephemeral && (
            <Tip label={t.ephemeral}>
              <Timer className="size-3.5 shrink-0 text-ink-3" role="img" aria-label={t.ephemeral} />
            </Tip>
          )}
          <Attention node={node} around={around} />
        </span>
      ),
    }),
    textColumn({
      id: "address",
      title: t.columns.address,
      width: 132,
      yields: 2,
      value: ipv4Of,
      cell: (node) => (
        <span className="relative flex items-center">
          <Tip label={ipv6Of(node)}>
            <span className="font-mono text-12 text-ink-2">{ipv4Of(node)}</span>
          </Tip>
          <CopyButton
            value={ipv4Of(node)}
            what={ipv4Of(node)}
            className="absolute right-0 bg-canvas opacity-0 group-hover/row:opacity-100 focus-visible:opacity-100"
          />
        </span>
      ),
    }),
    textColumn({
      id: "owner",
      title: t.columns.owner,
      width: 176,
      yields: 3,
      value: ownerWords,
      cell: (node) => (
        <Flash value={ownerWords(node)} className="block w-fit max-w-full rounded">
          <Owner node={node} />
        </Flash>
      ),
    }),
    {
      id: "routes",
      title: t.columns.routes,
      width: 158,
      yields: 4,
      sort: (a, b) =>
        waitingRoutes(b).length - waitingRoutes(a).length || b.approvedRoutes.length - a.approvedRoutes.length,
      csv: (node) => node.availableRoutes.join(" "),
      cell: (node) => (
        <Flash value={`${node.availableRoutes} ${node.approvedRoutes}`} className="block w-fit rounded">
          <RouteBadges node={node} />
        </Flash>
      ),
    },
    {
      id: "seen",
      title: t.columns.activity,
      width: 168,
      yields: 1,
      sort: (a, b) => seen(a) - seen(b),
      csv: (node) => (node.online ? new Date(now).toISOString() : node.lastSeen),
      cell: (node) => (
        <span className="flex items-center gap-3">
          <Presence node={node} presence={presence?.get(node.id)} />
          {node.online ? (
            <span>{text.common.now}</span>
          ) : (
            <Time at={node.lastSeen} focusable={false} className="text-ink-2" />
          )}
        </span>
      ),
    },
    {
      id: "expiry",
      title: t.columns.expiry,
      width: 112,
      yields: 5,
      sort: (a, b) => time(a.expiry) - time(b.expiry),
      csv: (node) => node.expiry ?? "",
      cell: (node) => (
        <Flash value={`${node.expiry} ${node.expired}`} className="rounded text-ink-2">
          {node.expiry ? (
            <Time
              at={node.expiry}
              focusable={false}
              format={node.expired ? t.expired : undefined}
              className={clsx(node.expired ? "text-bad" : time(node.expiry) - now < soon && "text-warn")}
            />
          ) : (
            text.common.never
          )}
        </Flash>
      ),
    },
    textColumn({
      id: "client",
      title: t.columns.client,
      width: 92,
      yields: 6,
      value: (node) => node.clientVersion,
      cell: (node) => (
        <span className="flex items-center gap-1 font-mono text-12 text-ink-2">
          {printable(shortVersion(node.clientVersion))}
          {node.clientVersion && compareText(shortVersion(node.clientVersion), newest) < 0 && (
            <Tip label={t.updateKnown(newest)}>
              <CircleArrowUp className="size-3.5 text-warn" role="img" aria-label={t.updateKnown(newest)} />
            </Tip>
          )}
        </span>
      ),
    }),
    plain(
      "created",
      (node) => node.createdAt,
      (node) => <Time at={node.createdAt} focusable={false} className="text-ink-2" />,
      110,
    ),
    plain("os", (node) => systemName(node.os)),
    plain("hostname", (node) => node.hostname),
    plain("ipv6", ipv6Of, (node) => <span className="truncate font-mono text-12 text-ink-2">{ipv6Of(node)}</span>, 190),
    plain("id", (node) => node.id, undefined, 80),
    plain("joined", (node) => t.joinedBy[node.registerMethod]),
    plain("relay", (node) => hosts?.get(node.id)?.relay?.name ?? ""),
    plain("nat", (node) => natWord(hosts?.get(node.id)?.nat.mappingVaries)),
  ];
}

/** The columns of an exported file: the state is a word there, and activity is when a node was last seen. */
export function exported(columns: readonly Column<Node>[]): Column<Node>[] {
  return columns.flatMap((column) => {
    if (column.id === "seen") return { ...column, title: t.columns.seen };
    return column.id === "node" ? [column, state] : column;
  });
}

const state: Column<Node> = plain("state", (node) => t.state[stateOf(node)]);

/** A column that is hidden by default. */
function plain(
  id: keyof typeof t.columns,
  value: (node: Node) => string,
  cell?: Column<Node>["cell"],
  width = 130,
): Column<Node> {
  return textColumn({ id, title: t.columns[id], width, extra: true, value, ...(cell && { cell }) });
}
