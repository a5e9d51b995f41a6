import { Apple, Laptop, Smartphone, Terminal, TriangleAlert } from "lucide-react";
import type { Node } from "@/api";
import { printable, text } from "@/text";
import { Avatar, Badge, Chips, Mark, Tip } from "@/ui";
import { isExitNode, stateOf, subnetsOf, waitingRoutes } from "./facts";

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

/** What waits comes first, then what serves. */
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

/**
 * The last day in a strip of 96 × 14: quiet while all is well. Only a server has outages; a closed laptop does not.
 */
export function Presence({ node, shares }: { node: Node; shares: readonly number[] | undefined }) {
  if (!shares) return <span className="block h-3.5 w-24 shrink-0" />;
  const percent = Math.round((shares.reduce((sum, share) => sum + share, 0) / Math.max(1, shares.length)) * 100);
  const runs: { from: number; length: number; up: boolean }[] = [];
  shares.forEach((share, i) => {
    const up = share > 0.5;
    const last = runs.at(-1);
    if (last?.up === up) last.length++;
    else runs.push({ from: i, length: 1, up });
  });
  const unit = 96 / Math.max(1, shares.length);
  return (
    <svg
      viewBox="0 0 96 14"
      width="96"
      height="14"
      role="img"
      aria-label={text.nodes.presence(percent)}
      className="block shrink-0"
    >
      <rect x="0" y="6.5" width="96" height="1" fill="var(--line)" />
      {runs.map((run, i) => {
        if (run.up)
          return (
            <rect key={run.from} x={run.from * unit} y="5" width={run.length * unit} height="4" fill="var(--up)" />
          );
        // Between two times of being there; before the first it was not yet, and after the last it is away.
        const outage = node.tags.length > 0 && i > 0 && i < runs.length - 1;
        return outage ? (
          <rect
            key={run.from}
            x={run.from * unit - 0.5}
            y="1"
            width={Math.max(2, run.length * unit)}
            height="12"
            rx="1"
            fill="var(--gap)"
          />
        ) : null;
      })}
    </svg>
  );
}
