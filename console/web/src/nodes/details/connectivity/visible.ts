import { type AccessRow, linesOf, rowsOf } from "@/access";
import type { AccessMap, AccessPrincipal, Node } from "@/api";
import { isExitNode, subnetsOf } from "../../facts";

/** "out": the node can reach the peer. "in": the peer can reach the node. Either makes them see each other. */
export type Way = "out" | "in";

export interface Reason {
  way: Way;
  /** Lines of the rules. Empty if no policy restricts access. */
  lines: number[];
  /** Set if the rule is about a network behind one of the two nodes: its prefix, or "" for the internet. */
  route?: string;
}

export interface VisiblePeer {
  node: Node;
  reasons: Reason[];
  /** Whether further rules may apply, which only an access map of the peer itself shows. */
  partial: boolean;
}

export type Maps = Readonly<Record<Way, AccessMap>>;

const ways: readonly Way[] = ["out", "in"];
const far = { out: "to", in: "from" } as const;

const keyOf = ({ kind, name, id }: AccessPrincipal) => (kind === "user" || kind === "node" ? kind + id : name);

interface Side {
  way: Way;
  rows: ReadonlyMap<string, AccessRow>;
  listed: ReadonlySet<string>;
  /** Whether all principals are listed. */
  complete: boolean;
}

function sideOf(map: AccessMap, way: Way): Side {
  const principals = way === "out" ? map.to : map.from;
  return {
    way,
    rows: new Map(rowsOf(map).map((row) => [keyOf(row[far[way]]), row])),
    listed: new Set(principals.map(keyOf)),
    complete: (way === "out" ? map.moreTo : map.moreFrom) + map.moreCells === 0,
  };
}

/** The keys of the principals that a node belongs to: its tags, or its user if it has no tags. */
const ownersOf = (node: Node) => (node.tags.length > 0 ? node.tags : [`user${node.user?.id ?? ""}`]);

/** Combines the lines of reasons that are otherwise the same. */
function add(reasons: Reason[], reason: Reason) {
  const same = reasons.find(({ way, route }) => way === reason.way && route === reason.route);
  if (!same) reasons.push(reason);
  else same.lines = [...new Set([...same.lines, ...reason.lines])].sort((a, b) => a - b);
}

/**
 * The reasons why a node sees a peer, from a map by users and tags. `sure` is false if a rule applies only to some
 * nodes of the peer's user or tag, so that only a map by nodes shows whether it applies to the peer.
 */
function reasonsFor(peer: Node, { way, rows, listed, complete }: Side): { reasons: Reason[]; sure: boolean } {
  const reasons: Reason[] = [];
  let sure = true;
  for (const owner of ownersOf(peer)) {
    const row = rows.get(owner);
    if (!row) {
      sure &&= complete || listed.has(owner);
      continue;
    }
    const forAll = row.rules.filter((use) => use.before >= row.cell.of);
    sure &&= forAll.length === row.rules.length;
    if (forAll.length > 0) add(reasons, { way, lines: linesOf(forAll) });
  }
  return { reasons, sure };
}

/** The reasons why a node sees a router: it can reach a network behind it, or that network can reach the node. */
function routerReasons(peer: Node, { way, rows }: Side): Reason[] {
  const reasons: Reason[] = [];
  const routes = subnetsOf(peer).map((prefix) => ({ name: prefix, route: prefix }));
  if (isExitNode(peer)) routes.push({ name: "autogroup:internet", route: "" });
  for (const { name, route } of routes) {
    const uses = (rows.get(name)?.rules ?? []).filter(
      ({ rule }) => way === "in" || rule.via.length === 0 || rule.via.some((tag) => peer.tags.includes(tag)),
    );
    if (uses.length > 0) add(reasons, { way, lines: linesOf(uses), route });
  }
  return reasons;
}

/**
 * The peers that a node sees, and why. `maps` are by users and tags. `open` lists the IDs of nodes whose visibility
 * these maps do not show. `exact` are maps by nodes for some of the peers. Nodes with an expired key are left out.
 */
export function visiblePeers(
  node: Node,
  all: readonly Node[],
  maps: Maps,
  exact: readonly Maps[] = [],
): { peers: VisiblePeer[]; open: string[] } {
  const sides = ways.map((way) => sideOf(maps[way], way));
  const asked = exact.map((pair) => ways.map((way) => sideOf(pair[way], way)));
  const peers: VisiblePeer[] = [];
  const open: string[] = [];
  for (const peer of all) {
    if (peer.id === node.id || peer.expired) continue;
    const reasons: Reason[] = [];
    const answer = asked.find(([out]) => out?.listed.has(`node${peer.id}`));
    let sure = true;
    for (const [at, side] of sides.entries()) {
      const byOwner = reasonsFor(peer, side);
      sure &&= byOwner.sure;
      if (!answer) for (const reason of byOwner.reasons) add(reasons, reason);
      const row = answer?.[at]?.rows.get(`node${peer.id}`);
      if (row) add(reasons, { way: side.way, lines: linesOf(row.rules) });
      for (const reason of routerReasons(peer, side)) add(reasons, reason);
    }
    const partial = !sure && !answer;
    if (reasons.length > 0) peers.push({ node: peer, reasons, partial });
    else if (partial) open.push(peer.id);
  }
  return { peers, open };
}
