import { parse } from "jsonc-parser";
import type { Node } from "@/api";
import { type Fields, prefixContains } from "@/filter";
import { compareText } from "@/nodes";
import { type NodeRoute, routesOf } from "@/nodes/routes";

/** One router of one network, or one exit node. */
export interface RouteRow {
  id: string;
  node: Node;
  route: NodeRoute;
  /** The network; of an exit node 0.0.0.0/0. */
  prefix: string;
  /** Other networks in the list that share addresses with it. */
  overlaps: readonly string[];
}

const advertises = (node: Node) => node.availableRoutes.length > 0 || node.approvedRoutes.length > 0;

/** All that nodes offer or may serve. */
export function routeRows(nodes: readonly Node[]): RouteRow[] {
  const routers = nodes.filter(advertises);
  const rows = routers.flatMap((node) =>
    routesOf(node, routers).map((route) => ({ node, route, prefix: route.prefixes[0] ?? "" })),
  );
  const networks = [...new Set(rows.filter((row) => !row.route.exit).map((row) => row.prefix))];
  const overlaps = new Map(networks.map((prefix) => [prefix, networks.filter((other) => overlap(prefix, other))]));
  return rows.map((row) => ({
    ...row,
    id: `${row.node.id} ${row.prefix}`,
    overlaps: row.route.exit ? [] : (overlaps.get(row.prefix) ?? []),
  }));
}

const overlap = (a: string, b: string) => a !== b && (prefixContains(a, b) || prefixContains(b, a));

/** By network and name, so that no row moves when its switch is turned. */
export const byNetwork = (a: RouteRow, b: RouteRow) =>
  compareText(a.prefix, b.prefix) || compareText(a.node.givenName, b.node.givenName);

/** All but the first row of each network, in their usual order. */
export function repeatedIn(rows: readonly RouteRow[]): ReadonlySet<string> {
  const seen = new Set<string>();
  const repeated = new Set<string>();
  for (const row of [...rows].sort(byNetwork)) {
    if (seen.has(row.prefix)) repeated.add(row.id);
    seen.add(row.prefix);
  }
  return repeated;
}

/** Those that a person has to decide, with all routers of their networks. */
export function splitWaiting(rows: readonly RouteRow[]): { waiting: RouteRow[]; rest: RouteRow[] } {
  const keys = new Set(rows.filter((row) => row.route.state === "waiting").map(groupOf));
  return {
    waiting: rows.filter((row) => keys.has(groupOf(row))),
    rest: rows.filter((row) => !keys.has(groupOf(row))),
  };
}
const groupOf = (row: RouteRow) => (row.route.exit ? row.id : row.prefix);

/** Networks in use that a route would share addresses with, and an address of the person that it holds. */
export function dangersOf(row: RouteRow, rows: readonly RouteRow[], own: string): { inUse: string[]; own: boolean } {
  const used = new Set(rows.filter((other) => other.route.state === "serving").map((other) => other.prefix));
  return {
    inUse: row.overlaps.filter((prefix) => used.has(prefix)),
    own: !row.route.exit && own !== "" && prefixContains(row.prefix, own),
  };
}

/** Whom a policy approves without anybody looking. */
export interface AutoApprovers {
  routes: [prefix: string, by: string[]][];
  exitNode: string[];
}

const names = (value: unknown) =>
  Array.isArray(value) ? value.filter((name): name is string => typeof name === "string") : [];

export function autoApprovers(policy: string): AutoApprovers {
  const root = parse(policy, [], { allowTrailingComma: true }) as
    | { autoApprovers?: Record<string, unknown> }
    | undefined;
  const approvers = root?.autoApprovers ?? {};
  const routes = approvers.routes;
  return {
    routes:
      routes !== null && typeof routes === "object"
        ? Object.entries(routes).map(([prefix, by]) => [prefix, names(by)])
        : [],
    exitNode: names(approvers.exitNode),
  };
}

/** The part of the policy that approves a route, whoever offers it. */
export function approverOf(row: RouteRow, by: AutoApprovers): { prefix: string; by: string[] } | null {
  if (row.route.exit) return by.exitNode.length > 0 ? { prefix: row.prefix, by: by.exitNode } : null;
  const found = by.routes.find(([prefix]) => prefixContains(prefix, row.prefix));
  return found ? { prefix: found[0], by: found[1] } : null;
}

export const routeFilterFields = ["is", "tag", "user", "node"];

export const routeFilter: Fields<RouteRow> = {
  text: (row, word) =>
    row.prefix.startsWith(word) ||
    row.node.givenName.toLowerCase().includes(word) ||
    (!row.route.exit && prefixContains(row.prefix, word)),
  fields: {
    is: (row, value) => row.route.state === value || (value === "overlapping" && row.overlaps.length > 0),
    tag: (row, value) => row.node.tags.some((tag) => tag.toLowerCase() === `tag:${value}`),
    user: (row, value) => row.node.tags.length === 0 && row.node.user?.name.toLowerCase() === value,
    node: (row, value) => row.node.givenName.toLowerCase() === value,
  },
};
