import type { Node } from "@/api";
import { prefixContains } from "@/filter";
import { type NodeRoute, routesOf, withRoute } from "@/nodes/routes";
import { compareText } from "@/text";

/** One router of one network, or one exit node. */
export interface RouteRow {
  id: string;
  node: Node;
  route: NodeRoute;
  /** The network; 0.0.0.0/0 for an exit node. */
  prefix: string;
  /** Other networks in the list that share addresses with it. */
  overlaps: readonly string[];
}

/** The routes that somebody wants to approve or disable, and all existing routes. */
export interface Asked {
  on: boolean;
  rows: readonly RouteRow[];
  all: readonly RouteRow[];
  /** The IP address from which this session's key was last used, or empty if unknown. */
  own: string;
}

const advertises = (node: Node) => node.availableRoutes.length > 0 || node.approvedRoutes.length > 0;

/** All routes that nodes advertise or may serve. */
export function routeRows(nodes: readonly Node[]): RouteRow[] {
  const routers = nodes.filter(advertises);
  const rows = routers.flatMap((node) =>
    routesOf(node, routers).map((route) => ({ node, route, prefix: route.prefixes[0] ?? "" })),
  );
  const networks = [...new Set(rows.filter((row) => !row.route.exit).map((row) => row.prefix))];
  const overlaps = new Map(networks.map((prefix) => [prefix, networks.filter((other) => overlap(prefix, other))]));
  return rows.map((row) => ({
    ...row,
    id: routeId(row.node, row.prefix),
    overlaps: row.route.exit ? [] : (overlaps.get(row.prefix) ?? []),
  }));
}

export const routeId = (node: Node, prefix: string) => `${node.id} ${prefix}`;
export const isWaiting = (row: RouteRow) => row.route.state === "waiting";

const overlap = (a: string, b: string) => a !== b && (prefixContains(a, b) || prefixContains(b, a));

/** Sorts by network and name, so that no row moves when its switch is toggled. */
export const byNetwork = (a: RouteRow, b: RouteRow) =>
  compareText(a.prefix, b.prefix) || compareText(a.node.givenName, b.node.givenName);

/** What approving a route would affect. */
export interface Dangers {
  /** Networks that share addresses with it, and are in use now or being approved together with it. */
  inUse: string[];
  /** Whether it contains the person's own IP address. */
  own: boolean;
}

export function dangersOf(row: RouteRow, all: readonly RouteRow[], own: string, chosen = noRows): Dangers {
  const used = new Set([...all.filter(isServing), ...chosen].map((other) => other.prefix));
  return {
    inUse: row.overlaps.filter((prefix) => used.has(prefix)),
    own: !row.route.exit && own !== "" && prefixContains(row.prefix, own),
  };
}

const noRows: readonly RouteRow[] = [];
const isServing = (row: RouteRow) => row.route.state === "serving";

/** What happens to a path whose router is no longer approved. */
export interface Loss {
  /** Other routers of the same network, one of which takes over; or other exit nodes to choose from. */
  next: readonly Node[];
  /** A larger network in service that gets its traffic if there is no other router. */
  wider?: RouteRow;
  /** Whether its users are cut off, at least for a while. */
  cuts: boolean;
}

/** The consequences for a route if several are disabled together; null if no traffic uses it now. */
export function lossOf(row: RouteRow, all: readonly RouteRow[], going: readonly RouteRow[]): Loss | null {
  if (!isServing(row)) return null;
  const gone = new Set(going.map(({ id }) => id));
  const staying = all.filter((other) => !gone.has(other.id) && other.id !== row.id);
  if (row.route.exit)
    return { next: staying.filter((other) => other.route.exit && isServing(other)).map(nodeOf), cuts: true };
  const next = staying.filter(
    (other) => other.prefix === row.prefix && (isServing(other) || other.route.state === "standby"),
  );
  const wider = staying
    .filter((other) => !other.route.exit && isServing(other) && prefixContains(other.prefix, row.prefix))
    .sort((a, b) => lengthOf(b.prefix) - lengthOf(a.prefix))[0];
  return { next: next.map(nodeOf), wider, cuts: next.length === 0 };
}

const nodeOf = (row: RouteRow) => row.node;
const lengthOf = (prefix: string) => Number(prefix.split("/")[1]);

/** Groups routes by node, since the routes of a node are changed in one call. */
export function byNode(rows: readonly RouteRow[]): RouteRow[][] {
  const groups = new Map<string, RouteRow[]>();
  for (const row of rows) groups.set(row.node.id, [...(groups.get(row.node.id) ?? []), row]);
  return [...groups.values()];
}

/** The call that switches routes of one node: it sends the list of all routes that are approved afterwards. */
export const turnCall = (node: Node, prefixes: readonly string[], on: boolean) => ({
  method: "post" as const,
  path: `/api/v1/node/${node.id}/approve_routes`,
  body: { routes: withRoute(node.approvedRoutes, prefixes, on) },
});

/** The calls for routes of several nodes. */
export const callsOf = (rows: readonly RouteRow[], on: boolean) =>
  byNode(rows).flatMap((group) => {
    const prefixes = group.flatMap((row) => row.route.prefixes);
    return group[0] ? [turnCall(group[0].node, prefixes, on)] : [];
  });
