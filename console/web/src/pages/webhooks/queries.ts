import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, keys } from "@/api";

/** The webhooks. A change in the state of a receiver causes no event, so the list is refetched while it is shown. */
export const webhooksQuery = queryOptions({
  queryKey: keys.webhooks,
  queryFn: async ({ signal }) => (await api.get("/api/v1/webhooks", { signal })).webhooks,
  refetchInterval: 10_000,
});

/** The events that a receiver did not accept within a day, newest first. */
export const failedQuery = (webhookId: string) =>
  infiniteQueryOptions({
    queryKey: [...keys.webhooks, webhookId, "failed"] as const,
    queryFn: ({ pageParam, signal }) =>
      api.get("/api/v1/webhooks/{webhookId}/failed", {
        params: { webhookId },
        query: { limit: 100, cursor: pageParam },
        signal,
      }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next || undefined,
  });
