import type { Query, QueryClient, QueryKey } from "@tanstack/react-query";
import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useState } from "react";
import { type Answer, api, urlOf } from "../client";
import { applyChanges, type Collection, type Merge, replace } from "../collection";
import { signedOut } from "../leave";
import { isPart, keys } from "../resources";
import { compareRevisions } from "../revision";
import { sessionQuery, useCan, useSession } from "../session";
import type { Change, Node, User } from "../types";
import { type AuditFilter, type AuditPages, addChanges } from "./audit";
import { beatEvery, Heartbeat } from "./heartbeat";
import { mergeNode, mergeUser, outdatedBy } from "./reduce";
import { EventFollower, type LiveState } from "./stream";

const collections: { key: readonly string[]; kind: string; merge: Merge<{ id: string }> }[] = [
  { key: keys.nodes, kind: "node", merge: mergeNode as unknown as Merge<{ id: string }> },
  { key: keys.users, kind: "user", merge: mergeUser as unknown as Merge<{ id: string }> },
  { key: keys.preAuthKeys, kind: "preauthkey", merge: replace },
  { key: keys.apiKeys, kind: "apikey", merge: replace },
];

/** Applies changes to the cache, and invalidates what they do not cover. */
export function patchCache(client: QueryClient, changes: Change[]) {
  for (const { key, kind, merge } of collections) {
    const own = changes.filter((change) => change.kind === kind);
    if (own.length === 0) continue;
    patch<Collection<{ id: string }>>(client, key, (cached) => applyChanges(cached, own, merge));
  }
  patchOwners(client, changes);
  const outdated = new Set<string>();
  for (const change of changes) {
    for (const part of outdatedBy(change)) outdated.add(part);
    if (change.kind !== "node") continue;
    const presence = change.verb === "online" || change.verb === "offline";
    const key = presence ? keys.nodePresence(change.object) : keys.node(change.object);
    outdate(client, key);
  }
  // The presence of the last day changes slowly; the components that show it refetch it at their own intervals.
  outdated.delete("presence");
  // The stream reports the audit log completely.
  outdated.delete("audit");
  patchAudit(client, changes);
  for (const part of outdated) readAnew(client, part);
}

interface Owned {
  id: string;
  user: User | null;
  createdBy?: User | null;
}

/** Updates changed users where nodes and keys name them. */
function patchOwners(client: QueryClient, changes: readonly Change[]) {
  const users = new Map<string | undefined, User>();
  for (const { kind, object, after } of changes) if (kind === "user" && after) users.set(object, after as User);
  if (users.size === 0) return;
  const renamed = <T extends Owned>(item: T): T => {
    const user = users.get(item.user?.id);
    const createdBy = users.get(item.createdBy?.id);
    return user || createdBy ? { ...item, ...(user && { user }), ...(createdBy && { createdBy }) } : item;
  };
  for (const key of [keys.nodes, keys.preAuthKeys])
    patch<Collection<Owned>>(client, key, (all) => {
      const items = all.items.map(renamed);
      return items.some((item, i) => item !== all.items[i]) ? { ...all, items } : all;
    });
  for (const [key] of client.getQueriesData({ queryKey: keys.node("").slice(0, 1) }))
    patch<Answer<{ node: Node }>>(client, key, (read) => {
      const node = renamed(read.data.node);
      return node === read.data.node ? read : { ...read, data: { ...read.data, node } };
    });
}

/** Changes the cached value under a key. A value that was invalidated or failed to load stays that way. */
function patch<T extends object>(client: QueryClient, key: QueryKey, change: (cached: T) => T) {
  const query = client.getQueryCache().find<T>({ queryKey: key, exact: true });
  const before = query?.state.data;
  if (!query || !before) return;
  const after = change(before);
  if (after === before) return;
  if (query.state.isInvalidated) query.setState({ data: after, dataUpdatedAt: Date.now() });
  else client.setQueryData<T>(key, after);
}

/**
 * Refetches everything under a key. A request in progress may return the earlier state, so it is left to finish and
 * then repeated.
 */
export function outdate(client: QueryClient, queryKey?: QueryKey) {
  for (const query of client.getQueryCache().findAll({ queryKey, fetchStatus: "fetching" })) {
    const again = () =>
      void client.invalidateQueries({ queryKey: query.queryKey, exact: true }, { cancelRefetch: false });
    query.promise?.then(again, again);
  }
  void client.invalidateQueries({ queryKey }, { cancelRefetch: false });
}

/** Data that the stream does not report completely is refetched at most once per this interval, in milliseconds. */
export const calm = 1000;
const resting = new WeakMap<QueryClient, Map<string, { again: boolean }>>();

/** Refetches data immediately. Changes soon after that are combined into one later refetch. */
function readAnew(client: QueryClient, part: string) {
  const parts = resting.get(client) ?? new Map<string, { again: boolean }>();
  resting.set(client, parts);
  const rest = parts.get(part);
  if (rest) {
    rest.again = true;
    return;
  }
  outdate(client, [part]);
  const begun = { again: false };
  parts.set(part, begun);
  setTimeout(() => {
    parts.delete(part);
    if (begun.again) readAnew(client, part);
  }, calm);
}

const recentMost = 2000;

/** Adds changes to the audit lists that they belong to. */
function patchAudit(client: QueryClient, changes: Change[]) {
  client.setQueryData<Change[]>(keys.recentChanges, (before = []) => [...before, ...changes].slice(-recentMost));
  for (const [key] of client.getQueriesData<AuditPages>({ queryKey: keys.audit })) {
    patch<AuditPages>(client, key, (pages) => addChanges(pages, key[1] as AuditFilter, changes));
  }
}

/** Refetches lists that show a state from before the stream started, including those that are still loading. */
export function refreshOlder(client: QueryClient, revision: string) {
  const older = (told: string | undefined) => told !== undefined && compareRevisions(told, revision) < 0;
  for (const { key } of collections) {
    const look = () => {
      if (older(client.getQueryData<Collection<unknown>>(key)?.revision)) outdate(client, key);
    };
    const reading = client.getQueryCache().find({ queryKey: key, exact: true, fetchStatus: "fetching" });
    if (reading && !reading.state.data) void reading.promise?.then(look, () => {});
    else look();
  }
  for (const [key, pages] of client.getQueriesData<AuditPages>({ queryKey: keys.audit })) {
    if (pages && older(pages.pages[0]?.revision ?? "0")) outdate(client, key);
  }
}

export const pollEvery = 30_000;

/** Periodically refetches what is shown, while the page is visible. Returns a function that stops it. */
export function poll(client: QueryClient): () => void {
  const timer = setInterval(() => {
    if (!document.hidden) void client.invalidateQueries();
  }, pollEvery);
  return () => clearInterval(timer);
}

const failed = (query: Query) => query.state.status === "error" || isPart(query);

/** Refetches what failed to load while the server was down. */
const readFailed = (client: QueryClient) => void client.refetchQueries({ type: "active", predicate: failed });

/** Keeps what is shown up to date for a key that may not follow the stream. Returns a function that stops it. */
function withoutStream(client: QueryClient, setState: (state: LiveState) => void): () => void {
  const heartbeat = new Heartbeat({
    ask: async () => (await api.send("/admin/api/session", { signal: AbortSignal.timeout(beatEvery) })).text(),
    isHidden: () => document.hidden,
    onState: (next) => {
      setState(next);
      if (next.name === "polled") readFailed(client);
    },
  });
  const endPoll = poll(client);
  const look = () => void heartbeat.beat();
  document.addEventListener("visibilitychange", look);
  heartbeat.start();
  return () => {
    document.removeEventListener("visibilitychange", look);
    heartbeat.stop();
    endPoll();
  };
}

const Context = createContext<LiveState>({ name: "connecting", since: 0 });

/** How the data on the page is kept up to date, and whether that works now. */
export const useLive = () => useContext(Context);

/** Keeps the cache up to date with the event stream while the page is visible. Returns a function that stops it. */
export function follow(client: QueryClient, onState: (state: LiveState) => void): () => void {
  let endPoll: (() => void) | undefined;
  const follower = new EventFollower({
    open: (after, signal) =>
      api.send(urlOf("/api/v1/events", undefined, { after: after ?? undefined }), {
        signal,
        headers: { Accept: "text/event-stream" },
      }),
    onState: (next) => {
      onState(next);
      if (next.name === "polled") {
        endPoll ??= poll(client);
        return;
      }
      endPoll?.();
      endPoll = undefined;
      if (next.name === "live") readFailed(client);
    },
    onChanges: (changes) => patchCache(client, changes),
    onBegin: (revision) => refreshOlder(client, revision),
    onReset: () => outdate(client),
    onRefused: () => outdate(client, sessionQuery.queryKey),
    onSessionEnded: signedOut,
  });
  const look = () => follower.setHidden(document.hidden);
  document.addEventListener("visibilitychange", look);
  follower.start(document.hidden);
  return () => {
    document.removeEventListener("visibilitychange", look);
    follower.stop();
    endPoll?.();
  };
}

export function LiveProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const { key } = useSession();
  const follows = useCan()("history:read");
  const [state, setState] = useState<LiveState>(() => ({ name: "connecting", since: Date.now() }));
  // biome-ignore lint/correctness/useExhaustiveDependencies: a stream lives as long as the key it was opened with
  useEffect(() => {
    return follows ? follow(client, setState) : withoutStream(client, setState);
  }, [client, key.id, follows]);
  return <Context value={state}>{children}</Context>;
}

export type Connection = { name: "live" | "reconnecting" | "asleep" | "polled" } | { name: "offline"; since: number };

/** A break of less than this time is not reported. */
const quietFor = 3000;
/** After a break of this length, writing is disabled. */
const offlineAfter = 10_000;

export function useConnection(): Connection {
  const state = useLive();
  const since = state.name === "connecting" ? state.since : 0;
  const [, setNow] = useState(0);
  useEffect(() => {
    if (!since) return;
    const timers = [quietFor, offlineAfter].map((after) =>
      setTimeout(() => setNow(Date.now()), Math.max(0, since + after - Date.now()) + 20),
    );
    return () => timers.forEach(clearTimeout);
  }, [since]);
  if (state.name !== "connecting") return state;
  const broken = Date.now() - since;
  if (broken >= offlineAfter) return { name: "offline", since };
  return { name: broken >= quietFor ? "reconnecting" : "live" };
}
