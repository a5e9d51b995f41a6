import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { type AuditFilter, api, auditQuery, type Node, type NodeBuckets, useCan, useNodes, usePresence } from "@/api";
import { byName, isExitNode, isServer, outages, subnetsOf } from "@/nodes";
import { useSearchState } from "@/router/search";
import { useNow } from "@/ui";
import { kindsOf, lanesOf, type Told, tell } from "./marks";
import { type Period, periodOf, type RangeName, rangeNames } from "./range";

/** The state of the page, which is in the URL. */
export function useTimelineSearch() {
  return useSearchState({
    range: "24h",
    q: "",
    from: "",
    to: "",
    at: "",
    event: "",
    lane: "",
    verb: "",
    actor: "",
    kind: "",
    object: "",
    nodes: "",
  });
}
export type TimelineSearch = ReturnType<typeof useTimelineSearch>[0];

/** The period in the URL, as of when it was requested: the current time moves on without a refetch. */
export function useAsked({ range, from, to }: TimelineSearch): Period {
  return useMemo(() => periodOf({ range, from, to }, Date.now()), [range, from, to]);
}

/** The displayed period: a live one ends now, or at the newest event. */
export function useShown(asked: Period, { range, from }: TimelineSearch, newest: number) {
  const minute = useNow();
  const live = asked.to === null;
  const end = asked.to ?? Math.max(minute, newest, asked.from + 1000);
  const begin = live && !from ? periodOf({ range, from: "", to: "" }, end).from : asked.from;
  const name: RangeName | "" = from ? "" : (rangeNames.find((each) => each === range) ?? "24h");
  return { period: { from: begin, to: asked.to }, end, live, name };
}

const pageSize = 250;
/** How many events are loaded automatically; older ones are loaded on request. */
const readAhead = 1000;

export function useTimelineEvents(search: TimelineSearch, asked: Period) {
  const enabled = useCan()("history:read");
  const lanes = useMemo(() => lanesOf(search.lane), [search.lane]);
  const filter = useMemo((): AuditFilter => {
    const iso = (at: number) => new Date(at).toISOString();
    return {
      kind: search.kind || kindsOf(lanes),
      verb: search.verb || undefined,
      actor: search.actor || undefined,
      object: search.object || undefined,
      from: iso(asked.from),
      to: asked.to === null ? undefined : iso(asked.to),
    };
  }, [search.kind, search.verb, search.actor, search.object, lanes, asked]);
  const query = useInfiniteQuery({ ...auditQuery(filter, pageSize), enabled });
  const { data, hasNextPage, isFetching, isError, fetchNextPage } = query;
  const read = data?.pages.reduce((sum, page) => sum + page.entries.length, 0) ?? 0;
  useEffect(() => {
    if (hasNextPage && !isFetching && !isError && read < readAhead) void fetchNextPage();
  }, [hasNextPage, isFetching, isError, read, fetchNextPage]);
  const told = useMemo((): Told[] => {
    const all = data?.pages.flatMap((page) => page.entries).map(tell) ?? [];
    return all.filter((each) => lanes.includes(each.words.lane));
  }, [data, lanes]);
  return { ...query, told, lanes, filter };
}

/** The event in the URL, even if it is older than the loaded events. */
export function useOpenEvent(id: string, told: readonly Told[]): Told | null {
  const can = useCan()("history:read");
  const here = useMemo(() => told.find((each) => each.entry.id === id) ?? null, [told, id]);
  const [revision = "", index = ""] = id.split("-");
  const enabled = can && id !== "" && !here && /^\d+$/.test(revision) && /^\d+$/.test(index);
  const { data } = useQuery({
    queryKey: ["event", id],
    queryFn: async ({ signal }) => {
      // The last entry before the next position is the one in the URL, if it is still stored.
      const cursor = `${revision}-${Number(index) + 1}`;
      const page = await api.get("/api/v1/audit", { query: { cursor, limit: 1 }, signal });
      return page.entries.find((entry) => entry.id === id) ?? null;
    },
    enabled,
  });
  return here ?? (enabled && data ? tell(data) : null);
}

const usualMost = 8;

/** The nodes whose presence is shown: the selected ones, or routers, exit nodes and nodes with outages. */
export function usePresenceNodes(chosen: string): { nodes: Node[]; usual: boolean } {
  const { data: all } = useNodes();
  const { data: presence } = usePresence();
  // The default is decided once: strips that appear and disappear on their own are unreadable.
  const [usual, setUsual] = useState<string[] | null>(null);
  const ready = all?.complete && presence !== undefined;
  useEffect(() => {
    if (!ready || usual) return;
    setUsual(usualNodes(all.items, presence).map((node) => node.id));
  }, [ready, all, presence, usual]);
  return useMemo(() => {
    const ids = chosen ? chosen.split(",") : (usual ?? []);
    const byId = new Map(all?.items.map((node) => [node.id, node]));
    return { nodes: ids.flatMap((id) => byId.get(id) ?? []), usual: !chosen };
  }, [chosen, usual, all]);
}

/** Nodes with outages first, then nodes that others depend on. */
export function usualNodes(nodes: readonly Node[], presence: ReadonlyMap<string, NodeBuckets>): Node[] {
  const weight = (node: Node) => {
    const gone = isServer(node) ? outages(node, presence.get(node.id)) : 0;
    const serves = subnetsOf(node).length > 0 || isExitNode(node);
    return gone > 0 ? 10 + gone : serves ? 1 : 0;
  };
  return nodes
    .map((node) => ({ node, weight: weight(node) }))
    .filter((each) => each.weight > 0)
    .sort((a, b) => b.weight - a.weight || byName(a.node, b.node))
    .slice(0, usualMost)
    .map((each) => each.node);
}
