import type { LucideIcon } from "lucide-react";

/** A palette entry: a destination or an action. */
export interface Entry {
  /** Stable, so that recently used entries come first. */
  id: string;
  title: string;
  note?: string;
  /** Other words that people search for. */
  words: string;
  icon: LucideIcon;
  keys?: string;
  group: string;
  /** Set if it is not remembered as recently used. */
  passing?: true;
  run(): void;
}

/** The maximum number of entries per group; nobody would read more. */
const most = 8;

/**
 * The entries that match the query, by group: titles that start with it, then titles that contain it, then other words;
 * among equals, recently used ones first. The group with the best match comes first. Without a query: recently used
 * entries, then all others.
 */
export function found(
  entries: readonly Entry[],
  query: string,
  recent: readonly string[],
  recentGroup: string,
): [string, Entry[]][] {
  const groups = new Map<string, Entry[]>();
  if (!query) {
    const lately = recent.flatMap((id) => entries.find((entry) => entry.id === id) ?? []);
    if (lately.length > 0) groups.set(recentGroup, lately);
  }
  const ranked = entries.flatMap((entry) => {
    const rank = rankOf(entry, query);
    return rank < unfit ? [{ entry, rank: rank * 2 + (recent.includes(entry.id) ? 0 : 1) }] : [];
  });
  if (query) ranked.sort((a, b) => a.rank - b.rank);
  for (const { entry } of ranked) {
    const list = groups.get(entry.group) ?? [];
    if (list.length < most) groups.set(entry.group, [...list, entry]);
  }
  return [...groups];
}

const unfit = 3;

function rankOf(entry: Entry, query: string): number {
  const title = entry.title.toLowerCase();
  if (title.startsWith(query)) return 0;
  if (title.includes(query)) return 1;
  return `${entry.note ?? ""} ${entry.words}`.toLowerCase().includes(query) ? 2 : unfit;
}
