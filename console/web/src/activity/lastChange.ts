import { useQuery } from "@tanstack/react-query";
import { api, type Change, useCan } from "@/api";
import { text } from "@/text";
import { relative } from "@/ui/time";
import { actorWords } from "./words";

/** Which changes to look for: those of an object, or of the only one of its kind, that changed one of these fields. */
export interface Changed {
  kind: "node" | "user" | "dns";
  object?: string;
  members: readonly string[];
}

/** Who last changed it, and how long ago. Undefined while unknown, and without permission to read the history. */
export function useLastChange({ kind, object, members }: Changed): { who: string; when: string } | undefined {
  const { data, dataUpdatedAt } = useQuery({
    queryKey: ["lastChange", kind, object],
    queryFn: ({ signal }) => api.get("/api/v1/audit", { query: { kind, object, limit: 20 }, signal }),
    enabled: useCan()("history:read"),
    staleTime: 0,
    gcTime: 0,
  });
  const last = data?.entries.find((entry) => concerns(entry, members));
  if (!last) return undefined;
  const who = actorWords(last);
  return { who: `${who.charAt(0).toUpperCase()}${who.slice(1)}`, when: agoWords(last.at, dataUpdatedAt) };
}

function concerns({ before, after }: Change, members: readonly string[]): boolean {
  const [was, is] = [before, after].map((shape) => (shape ?? {}) as Record<string, unknown>);
  return members.some((name) => JSON.stringify(was?.[name]) !== JSON.stringify(is?.[name]));
}

/** How long ago something happened; to the second within the first minute. */
export function agoWords(at: string, now: number): string {
  const seconds = Math.max(1, Math.round((now - Date.parse(at)) / 1000));
  return seconds < 60 ? text.activity.secondsAgo(seconds) : relative(at, now);
}
