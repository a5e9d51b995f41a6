import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api } from "./client";
import { keys } from "./resources";
import { type AuditFilter, type AuditPage, type AuditPages, addChanges, withRecent } from "./stream/audit";
import type { Change } from "./types";

/**
 * The changes, newest first. Without `to` it is live: the stream adds new ones. `size` is the page size; fetchNextPage
 * loads older changes.
 */
export const auditQuery = (filter: AuditFilter = {}, size = 100) =>
  infiniteQueryOptions({
    queryKey: [...keys.audit, filter, size] as const,
    queryFn: async ({ client, pageParam, signal }): Promise<AuditPage> => {
      const query = { ...filter, limit: size, cursor: pageParam };
      const { data, revision } = await api.call("get", "/api/v1/audit", { query, signal });
      const page = { entries: data.entries, next: data.next, revision };
      return pageParam ? page : withRecent(page, filter, client.getQueryData<Change[]>(keys.recentChanges) ?? []);
    },
    // Older pages come with the first page as it was when they were requested; keep what the stream has added since.
    structuralSharing: (before, after) => {
      const told = (before as AuditPages | undefined)?.pages[0]?.entries ?? [];
      return addChanges(after as AuditPages, filter, told.toReversed());
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next || undefined,
  });

/** When a node went online and offline, from one time to another or until now. */
export const nodePresenceQuery = (id: string, from: string, to?: string) =>
  queryOptions({
    queryKey: keys.nodePresence(id, from, to),
    queryFn: ({ signal }) =>
      api.get("/api/v1/node/{nodeId}/presence", { params: { nodeId: id }, query: { from, to }, signal }),
  });
