import type { LucideIcon } from "lucide-react";

/** Something that the palette goes to or does. */
export interface Entry {
  /** Stays the same, so that what was used lately comes first. */
  id: string;
  title: string;
  note?: string;
  /** Other words by which people look for it. */
  words: string;
  icon: LucideIcon;
  keys?: string;
  group: string;
  /** Is not remembered as used lately. */
  passing?: true;
  run(): void;
}

/** Of each group; more would be read by nobody. */
const most = 8;

/**
 * What fits what was typed, by group: names that begin with it, then those that hold it, then other words; of equals
 * what was used lately first. The group with the best stands first. With nothing typed, what was used lately and then
 * everything.
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
