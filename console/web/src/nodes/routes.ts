import type { Node } from "@/api";
import { compareText } from "@/text";
import { isExitRoute } from "./facts";

export type RouteState = "waiting" | "serving" | "standby" | "offline" | "unoffered";

/** A route that a node offers as a unit: a network, or the exit route in both address families. */
export interface NodeRoute {
  prefixes: readonly string[];
  exit: boolean;
  state: RouteState;
  /** Other nodes through which the network is also reachable. */
  others: readonly Node[];
}

const order: readonly RouteState[] = ["waiting", "serving", "standby", "offline", "unoffered"];

/** The routes that a node advertises or may serve, pending ones first. */
export function routesOf(node: Node, all: readonly Node[]): NodeRoute[] {
  const prefixes = [...new Set([...node.availableRoutes, ...node.approvedRoutes])];
  const exits = prefixes.filter(isExitRoute);
  const groups = [...prefixes.filter((prefix) => !isExitRoute(prefix)).map((prefix) => [prefix]), exits];
  return groups
    .filter((group) => group.length > 0)
    .map((group) => ({
      prefixes: group,
      exit: isExitRoute(group[0] ?? ""),
      state: stateOfRoute(node, group),
      // Exit nodes do not replace each other: people choose among them.
      others: isExitRoute(group[0] ?? "") ? [] : all.filter((other) => other.id !== node.id && serves(other, group)),
    }))
    .sort(
      (a, b) =>
        order.indexOf(a.state) - order.indexOf(b.state) ||
        Number(a.exit) - Number(b.exit) ||
        compareText(a.prefixes[0] ?? "", b.prefixes[0] ?? ""),
    );
}

const serves = (node: Node, prefixes: readonly string[]) =>
  prefixes.every((prefix) => node.approvedRoutes.includes(prefix) && node.availableRoutes.includes(prefix));

function stateOfRoute(node: Node, prefixes: readonly string[]): RouteState {
  if (!prefixes.some((prefix) => node.approvedRoutes.includes(prefix))) return "waiting";
  if (!prefixes.some((prefix) => node.availableRoutes.includes(prefix))) return "unoffered";
  if (prefixes.some((prefix) => node.subnetRoutes.includes(prefix))) return "serving";
  return node.online && !node.expired ? "standby" : "offline";
}

/** The approved routes after a switch was toggled. */
export function withRoute(approved: readonly string[], prefixes: readonly string[], on: boolean): string[] {
  const others = approved.filter((prefix) => !prefixes.includes(prefix));
  return on ? [...others, ...prefixes] : others;
}

/** A route that deleted nodes served, and another node through which its network stays reachable, if there is one. */
export interface LostRoute {
  prefix: string;
  exit: boolean;
  other?: Node;
}

export function routesLostWith(going: readonly Node[], all: readonly Node[]): LostRoute[] {
  const gone = new Set(going.map((node) => node.id));
  const staying = all.filter((node) => !gone.has(node.id));
  const prefixes = going.flatMap((node) =>
    node.approvedRoutes.filter((prefix) => node.availableRoutes.includes(prefix)),
  );
  const lost = [...new Set(prefixes)].filter((prefix) => !isExitRoute(prefix)).sort(compareText);
  return [
    ...lost.map((prefix) => ({ prefix, exit: false, other: staying.find((node) => serves(node, [prefix])) })),
    ...(prefixes.some(isExitRoute) ? [{ prefix: "", exit: true }] : []),
  ];
}
