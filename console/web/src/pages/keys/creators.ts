import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { actorWords } from "@/activity/words";
import { api, type PreAuthKey, useCan } from "@/api";

/** The creator of each key, by its ID, for the last 1000 keys in the history. Refetched when there is a newer key. */
export function useCreators(all: readonly PreAuthKey[] | undefined): ReadonlyMap<string, string> | undefined {
  const can = useCan();
  const newest = all?.reduce((most, key) => Math.max(most, Number(key.id)), 0);
  return useQuery({
    queryKey: ["keyCreators", newest],
    queryFn: async ({ signal }) => {
      const query = { kind: "preauthkey", verb: "created", limit: 1000 };
      const { entries } = await api.get("/api/v1/audit", { query, signal });
      return new Map(entries.map((entry) => [entry.object, actorWords(entry)]));
    },
    enabled: newest !== undefined && newest > 0 && can("history:read"),
    placeholderData: keepPreviousData,
  }).data;
}
