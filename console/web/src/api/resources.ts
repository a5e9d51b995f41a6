import { type QueryClient, queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { type Answer, ApiError, api } from "./client";
import { addPage, applyChanges, type Collection, type Merge, replace } from "./collection";
import { useCan } from "./session";
import { mergeNode, mergeUser } from "./stream/reduce";
import type { ApiKey, Change, Node, NodeBuckets, NodeHost, PersonSession, Policy, PreAuthKey, User } from "./types";

/** The keys of the query cache. The event stream uses them to patch or invalidate data. */
export const keys = {
  nodes: ["nodes"],
  node: (id: string) => ["node", id],
  users: ["users"],
  preAuthKeys: ["preAuthKeys"],
  apiKeys: ["apiKeys"],
  routes: ["routes"],
  logins: ["logins"],
  ssh: ["ssh"],
  dns: ["dns"],
  policy: ["policy"],
  policyInForce: ["policy", "inForce"],
  policyVersions: ["policy", "versions"],
  presence: ["presence"],
  hosts: ["hosts"],
  nodePresence: (id: string, ...period: (string | undefined)[]) => ["presence", "node", id, ...period],
  audit: ["audit"],
  /** The latest changes from the stream, for a list that is being read. */
  recentChanges: ["recentChanges"],
  webhooks: ["webhooks"],
  server: ["server"],
  cluster: ["cluster"],
  relays: ["relays"],
  sessions: ["sessions"],
  passkeys: (user: string) => ["passkeys", user],
} as const;

const lists = ["nodes", "users", "preAuthKeys", "apiKeys"] as const;

/** The first page is small, so that it is on the screen while the rest loads. */
const firstPage = 200;
const nextPage = 1000;

interface Page<T> {
  items: T[];
  next?: string;
}

/**
 * Reads a list page by page. Each page is shown as soon as it arrives, and changes from the stream in the meantime are
 * kept.
 */
export async function readAll<T extends { id: string }>(
  client: QueryClient,
  key: readonly string[],
  kind: string,
  merge: Merge<T>,
  read: (page: { limit: number; cursor?: string }) => Promise<Answer<Page<T>>>,
): Promise<Collection<T>> {
  const old = client.getQueryData<Collection<T>>(key);
  let all: Collection<T> | undefined;
  let cursor: string | undefined;
  for (;;) {
    const { data, revision } = await read({ limit: cursor ? nextPage : firstPage, cursor });
    // If an older list is on the screen, the new one replaces it when complete; otherwise it grows.
    if (all && !old) all = client.getQueryData<Collection<T>>(key) ?? all;
    all = addPage(all, data.items, revision, !data.next);
    // The stream may have reported changes that this page does not show yet, while there was no list to put them into.
    const recent = client.getQueryData<Change[]>(keys.recentChanges) ?? [];
    const own = recent.filter((change) => change.kind === kind);
    all = applyChanges(all, own, merge);
    if (!data.next) return all;
    if (!old) client.setQueryData(key, all);
    cursor = data.next;
  }
}

interface Held {
  state: { data: unknown; fetchStatus: string };
}

const lacksPages = ({ state }: Held) => (state.data as Partial<Collection<unknown>> | undefined)?.complete === false;

/** Whether a list is incomplete and nothing is loading its other pages, because loading was cancelled or failed. */
export const isPart = (query: Held) => query.state.fetchStatus === "idle" && lacksPages(query);

/** The stream keeps a list up to date. A list that lacks pages is refetched when it is used. */
const staleTime = (query: Held) => (lacksPages(query) ? 0 : Number.POSITIVE_INFINITY);

const mapped = <A, B>(answer: Answer<A>, to: (data: A) => B): Answer<B> => ({ ...answer, data: to(answer.data) });

export const nodesQuery = queryOptions({
  queryKey: keys.nodes,
  staleTime,
  queryFn: ({ client, signal }): Promise<Collection<Node>> =>
    readAll(client, keys.nodes, "node", mergeNode, async (page) =>
      mapped(await api.call("get", "/api/v1/node", { query: page, signal }), (d) => ({ items: d.nodes, next: d.next })),
    ),
});

export const usersQuery = queryOptions({
  queryKey: keys.users,
  staleTime,
  queryFn: ({ client, signal }): Promise<Collection<User>> =>
    readAll(client, keys.users, "user", mergeUser, async (page) =>
      mapped(await api.call("get", "/api/v1/user", { query: page, signal }), (d) => ({ items: d.users, next: d.next })),
    ),
});

export const preAuthKeysQuery = queryOptions({
  queryKey: keys.preAuthKeys,
  staleTime,
  queryFn: ({ client, signal }): Promise<Collection<PreAuthKey>> =>
    readAll(client, keys.preAuthKeys, "preauthkey", replace, async (page) =>
      mapped(await api.call("get", "/api/v1/preauthkey", { query: page, signal }), (d) => ({
        items: d.preAuthKeys,
        next: d.next,
      })),
    ),
});

export const apiKeysQuery = queryOptions({
  queryKey: keys.apiKeys,
  staleTime,
  queryFn: ({ client, signal }): Promise<Collection<ApiKey>> =>
    readAll(client, keys.apiKeys, "apikey", replace, async (page) =>
      mapped(await api.call("get", "/api/v1/apikey", { query: page, signal }), (d) => ({
        items: d.apiKeys,
        next: d.next,
      })),
    ),
});

/** The sessions of all people. The stream says when one starts or ends, but not when it was last used. */
export const sessionsQuery = queryOptions({
  queryKey: keys.sessions,
  queryFn: async ({ signal }): Promise<PersonSession[]> => {
    const all: PersonSession[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await api.get("/api/v1/session", { query: { limit: nextPage, cursor }, signal });
      all.push(...page.sessions);
      if (!page.next) return all;
      cursor = page.next;
    }
  },
  refetchInterval: 60_000,
});

/** One node with what its device reports, and the ETag for changes to it. */
export const nodeQuery = (id: string) =>
  queryOptions({
    queryKey: keys.node(id),
    queryFn: ({ signal }) => api.call("get", "/api/v1/node/{nodeId}", { params: { nodeId: id }, signal }),
  });

export const loginsQuery = queryOptions({
  queryKey: keys.logins,
  queryFn: async ({ signal }) => (await api.get("/api/v1/auth/pending", { signal })).logins,
  // A device that starts to wait for approval causes no event.
  refetchInterval: 15_000,
});

/** SSH sessions that wait for approval. A session that starts to wait causes no event. */
export const sshQuery = queryOptions({
  queryKey: keys.ssh,
  queryFn: async ({ signal }) => (await api.get("/api/v1/ssh/pending", { signal })).sessions,
  refetchInterval: 15_000,
});

export const dnsQuery = queryOptions({
  queryKey: keys.dns,
  queryFn: ({ signal }) => api.call("get", "/api/v1/dns", { signal }),
});

/** The server's details and the health of each part. Health changes cause no events. */
export const serverQuery = queryOptions({
  queryKey: keys.server,
  queryFn: ({ signal }) => api.get("/api/v1/server", { signal }),
  refetchInterval: 30_000,
});

/** All replicas and the database. Their changes cause no events. */
export const clusterQuery = queryOptions({
  queryKey: keys.cluster,
  queryFn: ({ signal }) => api.get("/api/v1/cluster", { signal }),
  refetchInterval: 5_000,
});

/** Relays that run as processes of their own. What they report causes no events. */
export const relaysQuery = queryOptions({
  queryKey: keys.relays,
  queryFn: async ({ signal }) => (await api.get("/api/v1/relay", { signal })).relays,
  refetchInterval: 5_000,
});

/** By node ID: how much of each half hour of the last day the node was online, and how often that changed. */
export const presenceQuery = queryOptions({
  queryKey: keys.presence,
  queryFn: async ({ signal }): Promise<ReadonlyMap<string, NodeBuckets>> => {
    const all = new Map<string, NodeBuckets>();
    for (let cursor: string | undefined; ; ) {
      const page = await api.get("/api/v1/presence", { query: { buckets: 48, cursor }, signal });
      for (const node of page.nodes) all.set(node.nodeId, node);
      if (!page.next) return all;
      cursor = page.next;
    }
  },
  refetchInterval: 5 * 60_000,
});

/**
 * What devices report about themselves, by node ID. Much larger than the list, so it is read only where it is shown.
 */
export const hostsQuery = queryOptions({
  queryKey: keys.hosts,
  queryFn: async ({ signal }): Promise<ReadonlyMap<string, NodeHost>> => {
    const all = new Map<string, NodeHost>();
    for (let cursor: string | undefined; ; ) {
      const page = await api.get("/api/v1/node", { query: { host: true, limit: nextPage, cursor }, signal });
      for (const { id, host } of page.nodes) if (host) all.set(id, host);
      if (!page.next) return all;
      cursor = page.next;
    }
  },
  refetchInterval: 5 * 60_000,
});

/** A policy with the editor's line endings: otherwise a text written elsewhere would differ in every line. */
export const withPlainLines = <P extends { policy: string }>(policy: P): P => ({
  ...policy,
  policy: policy.policy.replace(/\r\n?/g, "\n"),
});

const newestVersion = async (signal: AbortSignal) =>
  (await api.get("/api/v1/policy/versions", { query: { limit: "1" }, signal })).versions[0] ?? null;

/** The ETag for saving the first policy: the save fails if somebody else has saved one in the meantime. */
const noneYet = '"0"';

/** The policy in force, or null if none has been saved. */
export const policyQuery = queryOptions({
  queryKey: keys.policyInForce,
  queryFn: async ({ client, signal }): Promise<{ policy: Policy | null; etag: string | null }> => {
    // Without a policy the server responds 404, which browsers log as an error. So the policy is requested only if
    // there is a version.
    const before = client.getQueryData<{ policy: Policy | null }>(keys.policyInForce);
    if (!before?.policy && !(await newestVersion(signal))) return { policy: null, etag: noneYet };
    try {
      const { data, etag } = await api.call("get", "/api/v1/policy", { signal });
      return { policy: withPlainLines(data), etag };
    } catch (error) {
      // After a first policy was reverted, there is no policy, but there is an ETag.
      if (error instanceof ApiError && error.status === 404) return { policy: null, etag: error.etag };
      throw error;
    }
  },
});

/** The newest version without its text, to find out whether it waits for confirmation; null if there is none. */
export const policyTrialQuery = queryOptions({
  queryKey: [...keys.policyVersions, "newest"],
  queryFn: ({ signal }) => newestVersion(signal),
});

/**
 * One version of the policy. The only thing about a saved version that changes is whether it waits for confirmation.
 */
export const policyVersionQuery = (version: string) =>
  queryOptions({
    queryKey: [...keys.policyVersions, version],
    queryFn: async ({ signal }) =>
      withPlainLines(await api.get("/api/v1/policy/versions/{version}", { params: { version }, signal })),
  });

/** Lists that a key may not see are not requested: then there is no data, and no error. */
export const useNodes = () => useQuery({ ...nodesQuery, enabled: useCan()("nodes:read") });
export const useUsers = () => useQuery({ ...usersQuery, enabled: useCan()("users:read") });
/** The lists that are shown although part of them could not be loaded. */
export function usePartLists() {
  const client = useQueryClient();
  const cache = client.getQueryCache();
  const held = (name: (typeof lists)[number]) => cache.find({ queryKey: keys[name], exact: true });
  const isPartShown = (name: (typeof lists)[number]) => {
    const query = held(name);
    return query?.isActive() && isPart(query);
  };
  const found = useSyncExternalStore(
    (tell) => cache.subscribe(tell),
    () => lists.filter(isPartShown).join(),
  );
  const names = lists.filter((name) => found.split(",").includes(name));
  return {
    names,
    error: names.map((name) => held(name)?.state.error).find(Boolean),
    retry: () => void client.refetchQueries({ type: "active", predicate: isPart }),
  };
}

/** For code that counts all nodes: undefined while part of them is missing. */
export const useAllNodes = () => {
  const asked = useNodes();
  return { ...asked, data: asked.data?.complete ? asked.data : undefined };
};
export const useHosts = (wanted: boolean) => useQuery({ ...hostsQuery, enabled: useCan()("nodes:read") && wanted });
export const usePresence = () => useQuery({ ...presenceQuery, enabled: useCan()("history:read") });
export const usePolicy = () => useQuery({ ...policyQuery, enabled: useCan()("policy:read") });
export const useDNS = () => useQuery({ ...dnsQuery, enabled: useCan()("dns:read") });
