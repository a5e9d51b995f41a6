import type { Node } from "@/api";
import { compareText } from "@/text";
import { isExitRoute } from "./facts";

export type RouteState = "waiting" | "serving" | "standby" | "offline" | "unoffered";

/** Something that a node offers as one: a network, or the way to the internet in both families. */
export interface NodeRoute {
  prefixes: readonly string[];
  exit: boolean;
  state: RouteState;
  /** Other nodes by which the network can be reached too. */
  others: readonly Node[];
}

const order: readonly RouteState[] = ["waiting", "serving", "standby", "offline", "unoffered"];

/** What a node offers or may serve, with what waits for a person first. */
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
      // Each exit node is a way of its own: people choose among them.
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

/** What is approved after a switch was turned. */
export function withRoute(approved: readonly string[], prefixes: readonly string[], on: boolean): string[] {
  const others = approved.filter((prefix) => !prefixes.includes(prefix));
  return on ? [...others, ...prefixes] : others;
}

/** A route that goes with nodes that go, and the node by which it can still be reached. */
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
