import { useQueries, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { accessQuery } from "@/access";
import { type AccessMap, type Node, useAllNodes } from "@/api";
import { type Maps, type VisiblePeer, visiblePeers } from "./visible";

/** The maximum number of nodes that the server accepts in one request. */
const atOnce = 100;
/** The maximum number of nodes to check in total. */
const most = 500;

export interface Peers {
  /** Undefined while they load. */
  found: { peers: VisiblePeer[]; maps: Maps } | undefined;
  /** How many more nodes may be visible, but were not checked. */
  unchecked: number;
  error: unknown;
  retry(): void;
}

/** The peers that a node sees. Two requests are enough unless rules apply only to some nodes of a user or a tag. */
export function usePeers(node: Node): Peers {
  const nodes = useAllNodes();
  const out = useQuery(accessQuery({ from: [node.id], by: "users" }));
  const into = useQuery(accessQuery({ to: [node.id], by: "users" }));
  const maps = useMemo(
    () => (out.data && into.data ? { out: out.data, in: into.data } : undefined),
    [out.data, into.data],
  );
  const all = nodes.data?.items;
  const open = useMemo(() => (all && maps ? visiblePeers(node, all, maps).open : []), [node, all, maps]);
  const exact = useExact(node, open.slice(0, most));
  const found = useMemo(
    () => all && maps && exact.maps && { peers: visiblePeers(node, all, maps, exact.maps).peers, maps },
    [node, all, maps, exact.maps],
  );
  const failed = [nodes, out, into].find(({ data, error }) => error && !data);
  return {
    found,
    unchecked: Math.max(0, open.length - most),
    error: found ? null : (failed?.error ?? exact.error),
    retry: () => {
      for (const query of [nodes, out, into]) if (query.error) void query.refetch();
      exact.retry();
    },
  };
}

/** The given peers, with all rules that make them visible once these have loaded. */
export function useAllReasons<P extends VisiblePeer>(node: Node, peers: readonly P[], maps: Maps): P[] {
  const exact = useExact(
    node,
    peers.filter(({ partial }) => partial).map((peer) => peer.node.id),
  );
  if (!exact.maps || exact.maps.length === 0) return [...peers];
  const nodes = peers.map((peer) => peer.node);
  const complete = new Map(visiblePeers(node, nodes, maps, exact.maps).peers.map((peer) => [peer.node.id, peer]));
  return peers.map((peer) => ({ ...peer, reasons: complete.get(peer.node.id)?.reasons ?? peer.reasons }));
}

/** Queries the access maps between a node and each of the given nodes. `maps` is undefined until all have loaded. */
function useExact(node: Node, ids: readonly string[]) {
  const parts: string[][] = [];
  for (let at = 0; at < ids.length; at += atOnce) parts.push(ids.slice(at, at + atOnce));
  return useQueries({
    queries: parts.flatMap((part) => [
      { ...accessQuery({ from: [node.id], to: part, by: "nodes" }), placeholderData: undefined },
      { ...accessQuery({ from: part, to: [node.id], by: "nodes" }), placeholderData: undefined },
    ]),
    combine: (results) => ({
      maps: pairsOf(results.map(({ data }) => data)),
      error: results.find(({ error }) => error)?.error ?? null,
      retry: () => {
        for (const result of results) if (result.error) void result.refetch();
      },
    }),
  });
}

/** The maps of both directions in pairs; undefined while one is missing. */
function pairsOf(answers: readonly (AccessMap | undefined)[]): Maps[] | undefined {
  const pairs: Maps[] = [];
  for (let at = 0; at < answers.length; at += 2) {
    const [out, into] = [answers[at], answers[at + 1]];
    if (!out || !into) return undefined;
    pairs.push({ out, in: into });
  }
  return pairs;
}
