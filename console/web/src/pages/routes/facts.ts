import { parse } from "jsonc-parser";
import type { AccessMap, Node } from "@/api";
import { type Fields, prefixContains } from "@/filter";
import { byNetwork, isWaiting, type RouteRow } from "@/routes";
import { internet, usersOf } from "@/routes/losers";

/** All rows except the first of each network, in default order. */
export function repeatedIn(rows: readonly RouteRow[]): ReadonlySet<string> {
  const seen = new Set<string>();
  const repeated = new Set<string>();
  for (const row of [...rows].sort(byNetwork)) {
    if (seen.has(row.prefix)) repeated.add(row.id);
    seen.add(row.prefix);
  }
  return repeated;
}

/** Splits off the routes that wait for approval, with all routers of their networks. */
export function splitWaiting(rows: readonly RouteRow[]): { waiting: RouteRow[]; rest: RouteRow[] } {
  const keys = new Set(rows.filter(isWaiting).map(groupOf));
  return {
    waiting: rows.filter((row) => keys.has(groupOf(row))),
    rest: rows.filter((row) => !keys.has(groupOf(row))),
  };
}
const groupOf = (row: RouteRow) => (row.route.exit ? row.id : row.prefix);

/** Whose routes a policy approves automatically. */
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

/** The part of the policy that auto-approves a route, whoever advertises it. */
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

/**
 * How many nodes may use each exit node, by its ID, according to an access map of nodes and the internet; undefined if
 * the map does not include all nodes.
 */
export function exitUsers(map: AccessMap, exits: readonly Node[]): ReadonlyMap<string, number> | undefined {
  const users = exits.map((exit) => ({ id: exit.id, ...usersOf(map, internet, exit) }));
  return users.every(({ complete }) => complete)
    ? new Map(users.map(({ id, names }) => [id, names.length]))
    : undefined;
}
