import type { Node } from "@/api";
import { prefixContains } from "@/filter";
import { type NodeRoute, routesOf, withRoute } from "@/nodes/routes";
import { compareText } from "@/text";

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

/** The routes that somebody wants to approve or disable, and all routes there are. */
export interface Asked {
  on: boolean;
  rows: readonly RouteRow[];
  all: readonly RouteRow[];
  /** The address this session's key was last used from, or empty if unknown. */
  own: string;
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
    id: routeId(row.node, row.prefix),
    overlaps: row.route.exit ? [] : (overlaps.get(row.prefix) ?? []),
  }));
}

export const routeId = (node: Node, prefix: string) => `${node.id} ${prefix}`;
export const isWaiting = (row: RouteRow) => row.route.state === "waiting";

const overlap = (a: string, b: string) => a !== b && (prefixContains(a, b) || prefixContains(b, a));

/** By network and name, so that no row moves when its switch is turned. */
export const byNetwork = (a: RouteRow, b: RouteRow) =>
  compareText(a.prefix, b.prefix) || compareText(a.node.givenName, b.node.givenName);

/** What approving a route would bend. */
export interface Dangers {
  /** Networks that it shares addresses with, in use now or approved together with it. */
  inUse: string[];
  /** Whether it holds the address of the person. */
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

/** What becomes of a path whose router no longer may serve it. */
export interface Loss {
  /** Routers of the same network of which one takes over; other exit nodes that can be chosen. */
  next: readonly Node[];
  /** A greater network in service, into which its traffic goes when there is no other router. */
  wider?: RouteRow;
  /** Whether those who use it are cut off, for a while at least. */
  cuts: boolean;
}

/** What follows when routes are disabled together; null where nothing goes through the route now. */
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

/** Routes of the same node together, since they are changed by one call. */
export function byNode(rows: readonly RouteRow[]): RouteRow[][] {
  const groups = new Map<string, RouteRow[]>();
  for (const row of rows) groups.set(row.node.id, [...(groups.get(row.node.id) ?? []), row]);
  return [...groups.values()];
}

/** What turning routes of one node sends: all that is approved afterwards. */
export const turnCall = (node: Node, prefixes: readonly string[], on: boolean) => ({
  method: "post" as const,
  path: `/api/v1/node/${node.id}/approve_routes`,
  body: { routes: withRoute(node.approvedRoutes, prefixes, on) },
});

/** The same for routes of several. */
export const callsOf = (rows: readonly RouteRow[], on: boolean) =>
  byNode(rows).flatMap((group) => {
    const prefixes = group.flatMap((row) => row.route.prefixes);
    return group[0] ? [turnCall(group[0].node, prefixes, on)] : [];
  });
