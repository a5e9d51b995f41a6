import type { Query, QueryClient } from "@tanstack/react-query";
import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useState } from "react";
import { api, urlOf } from "../client";
import { applyChanges, type Collection, type Merge, replace } from "../collection";
import { signedOut } from "../leave";
import { keys } from "../resources";
import { compareRevisions } from "../revision";
import { useCan, useSession } from "../session";
import type { Change } from "../types";
import { type AuditFilter, type AuditPages, addChanges } from "./audit";
import { beatEvery, Heartbeat } from "./heartbeat";
import { mergeNode, outdatedBy } from "./reduce";
import { EventFollower, type LiveState } from "./stream";

const collections: { key: readonly string[]; kind: string; merge: Merge<{ id: string }> }[] = [
  { key: keys.nodes, kind: "node", merge: mergeNode as unknown as Merge<{ id: string }> },
  { key: keys.users, kind: "user", merge: replace },
  { key: keys.preAuthKeys, kind: "preauthkey", merge: replace },
  { key: keys.apiKeys, kind: "apikey", merge: replace },
];

/** Puts changes into the cache, and marks what they leave out of date. */
export function patchCache(client: QueryClient, changes: Change[]) {
  for (const { key, kind, merge } of collections) {
    const own = changes.filter((change) => change.kind === kind);
    if (own.length === 0) continue;
    client.setQueryData<Collection<{ id: string }>>(key, (cached) => cached && applyChanges(cached, own, merge));
  }
  const outdated = new Set<string>();
  for (const change of changes) {
    for (const part of outdatedBy(change)) outdated.add(part);
    if (change.kind !== "node") continue;
    const presence = change.verb === "online" || change.verb === "offline";
    const key = presence ? keys.nodePresence(change.object) : keys.node(change.object);
    void client.invalidateQueries({ queryKey: key });
  }
  // The share of the last day changes slowly; what shows it asks again in its own time.
  outdated.delete("presence");
  // The stream tells the audit whole.
  outdated.delete("audit");
  patchAudit(client, changes);
  for (const part of outdated) readAnew(client, part);
}

/** Where much happens, a part that the stream does not tell whole is read once in this time. */
export const calm = 1000;
const resting = new WeakMap<QueryClient, Map<string, { again: boolean }>>();

/** Reads a part anew at once; what happens to it soon after is read together, later. */
function readAnew(client: QueryClient, part: string) {
  const parts = resting.get(client) ?? new Map<string, { again: boolean }>();
  resting.set(client, parts);
  const rest = parts.get(part);
  if (rest) {
    rest.again = true;
    return;
  }
  void client.invalidateQueries({ queryKey: [part] });
  const begun = { again: false };
  parts.set(part, begun);
  setTimeout(() => {
    parts.delete(part);
    if (begun.again) readAnew(client, part);
  }, calm);
}

const recentMost = 2000;

/** Adds changes to the lists of changes that they belong to. */
function patchAudit(client: QueryClient, changes: Change[]) {
  client.setQueryData<Change[]>(keys.recentChanges, (before = []) => [...before, ...changes].slice(-recentMost));
  for (const [key] of client.getQueriesData<AuditPages>({ queryKey: keys.audit })) {
    client.setQueryData<AuditPages>(key, (pages) => pages && addChanges(pages, key[1] as AuditFilter, changes));
  }
}

/** Reads anew what was read before the stream began. */
export function refreshOlder(client: QueryClient, revision: string) {
  for (const { key } of collections) {
    const cached = client.getQueryData<Collection<unknown>>(key);
    if (cached && compareRevisions(cached.revision, revision) < 0) void client.invalidateQueries({ queryKey: key });
  }
  for (const [key, pages] of client.getQueriesData<AuditPages>({ queryKey: keys.audit })) {
    if (pages && compareRevisions(pages.pages[0]?.revision ?? "0", revision) < 0)
      void client.invalidateQueries({ queryKey: key });
  }
}

export const pollEvery = 30_000;

/** Reads what is shown anew from time to time, while somebody looks. It gives the way to end this. */
export function poll(client: QueryClient): () => void {
  const timer = setInterval(() => {
    if (!document.hidden) void client.invalidateQueries();
  }, pollEvery);
  return () => clearInterval(timer);
}

const failed = (query: Query) => query.state.status === "error";

/** Reads what could not be read while the server was away, without anybody asking. */
const readFailed = (client: QueryClient) => void client.refetchQueries({ type: "active", predicate: failed });

/** Keeps what is shown true for a key that may not follow the stream. It gives the way to end this. */
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

/** Whether what is shown is what is. */
export const useLive = () => useContext(Context);

export function LiveProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const { key } = useSession();
  const follows = useCan()("history:read");
  const [state, setState] = useState<LiveState>(() => ({ name: "connecting", since: Date.now() }));
  // biome-ignore lint/correctness/useExhaustiveDependencies: a stream lives as long as the key that it was opened with
  useEffect(() => {
    if (!follows) return withoutStream(client, setState);
    const follower = new EventFollower({
      open: (after, signal) =>
        api.send(urlOf("/api/v1/events", undefined, { after: after ?? undefined }), {
          signal,
          headers: { Accept: "text/event-stream" },
        }),
      onState: (next) => {
        setState(next);
        if (next.name === "live") readFailed(client);
      },
      onChanges: (changes) => patchCache(client, changes),
      onBegin: (revision) => refreshOlder(client, revision),
      onReset: () => void client.invalidateQueries(),
      onSessionEnded: signedOut,
    });
    const look = () => follower.setHidden(document.hidden);
    document.addEventListener("visibilitychange", look);
    follower.start();
    return () => {
      document.removeEventListener("visibilitychange", look);
      follower.stop();
    };
  }, [client, key.id, follows]);
  return <Context value={state}>{children}</Context>;
}

export type Connection = { name: "live" | "reconnecting" | "asleep" | "polled" } | { name: "offline"; since: number };

/** A short break is nothing to speak of, a longer one is told, and then nothing is written. */
const quietFor = 3000;
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
