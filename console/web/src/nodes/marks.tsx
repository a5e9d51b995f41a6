import { Apple, Laptop, Smartphone, Terminal, TriangleAlert } from "lucide-react";
import type { Node, NodeBuckets } from "@/api";
import { printable, text } from "@/text";
import { Avatar, Badge, Chips, Mark, Tip } from "@/ui";
import { isExitNode, isServer, outages, stateOf, subnetsOf, waitingRoutes } from "./facts";
import { stripOf } from "./strip";

export function NodeMark({ node }: { node: Node }) {
  const state = stateOf(node);
  return (
    <Mark
      state={{ online: "on", offline: "off", expired: "bad" }[state] as "on" | "off" | "bad"}
      label={text.nodes.state[state]}
    />
  );
}

export function OsIcon({ os }: { os: string }) {
  const name = os.toLowerCase();
  const Icon = /ios|android/.test(name)
    ? Smartphone
    : /mac|darwin|tvos/.test(name)
      ? Apple
      : name.startsWith("win")
        ? Laptop
        : Terminal;
  return <Icon className="size-3.5 shrink-0 text-ink-3" aria-hidden />;
}

export function Owner({ node }: { node: Node }) {
  if (node.tags.length > 0) return <Chips tags={node.tags} />;
  const name = node.user?.name ?? "";
  return (
    <span className="flex min-w-0 items-center gap-2">
      <Avatar name={name} />
      <span className="truncate">{printable(name)}</span>
    </span>
  );
}

/** Pending routes first, then the active ones. */
export function RouteBadges({ node }: { node: Node }) {
  const waiting = waitingRoutes(node);
  const subnets = subnetsOf(node);
  return (
    <span className="flex items-center gap-1">
      {waiting.length > 0 && (
        <Tip label={`${text.nodes.waitingTip}: ${waiting.join(", ")}`}>
          <span>
            <Badge tone="warn">
              <TriangleAlert className="size-3" aria-hidden />
              {text.nodes.waiting(waiting.length)}
            </Badge>
          </span>
        </Tip>
      )}
      {subnets.length > 0 && (
        <Tip label={subnets.join(", ")}>
          <span>
            <Badge tone="route">{text.nodes.subnets(subnets.length)}</Badge>
          </span>
        </Tip>
      )}
      {isExitNode(node) && <Badge tone="route">{text.nodes.exit}</Badge>}
    </span>
  );
}

const boxes = (runs: readonly { from: number; length: number }[], unit: number, top: number, height: number) =>
  runs.map(({ from, length }) => `M${from * unit} ${top}h${length * unit}v${height}h${-length * unit}z`).join("");

/**
 * Presence in the last day as a strip of 96 × 14 pixels, unobtrusive while nothing is wrong. Only servers have outages; a
 * closed laptop does not.
 */
export function Presence({ node, presence }: { node: Node; presence: NodeBuckets | undefined }) {
  if (!presence) return <span className="block h-3.5 w-24 shrink-0" />;
  const shares = presence.online;
  const percent = Math.round((shares.reduce((sum, share) => sum + share, 0) / Math.max(1, shares.length)) * 100);
  const unit = 96 / Math.max(1, shares.length);
  const { bars, notches } = stripOf(shares, node.online);
  const gone = isServer(node) ? outages(node, presence) : 0;
  return (
    <svg
      viewBox="0 0 96 14"
      width="96"
      height="14"
      role="img"
      aria-label={text.nodes.presence(percent, gone)}
      className="block shrink-0"
    >
      <rect x="0" y="6.5" width="96" height="1" fill="var(--line)" />
      <path d={boxes(bars, unit, 5, 4)} fill="var(--up)" />
      {isServer(node) && notches.length > 0 && <path d={boxes(notches, unit, 1, 12)} fill="var(--gap)" />}
    </svg>
  );
}
