import type { Column } from "./columns";

export type Entry<T> = { id: string; row: T } | { id: string; head: Group<T> };

/** Rows under a common heading. */
export interface Group<T> {
  id: string;
  title: string;
  note?: string;
  rows: readonly T[];
}

export function layOut<T>(groups: readonly Group<T>[], rowId: (row: T) => string): Entry<T>[] {
  return groups.flatMap((group) => [
    ...(group.title && group.rows.length > 0 ? [{ id: `group:${group.id}`, head: group }] : []),
    ...group.rows.map((row) => ({ id: rowId(row), row })),
  ]);
}

/**
 * New rows in the old order, for a list that somebody is reading: removed rows are dropped, and new ones are added at
 * the end. `moved` is how many rows are out of place.
 */
export function freeze<T>(
  before: readonly string[],
  after: readonly Entry<T>[],
): { entries: readonly Entry<T>[]; moved: number } {
  const place = new Map(after.map((entry, index) => [entry.id, index]));
  const known = new Set(before);
  const kept = before.filter((id) => place.has(id));
  const added = after.filter((entry) => !known.has(entry.id));
  const places = [...kept.map((id) => place.get(id) ?? 0), ...added.map((entry) => place.get(entry.id) ?? 0)];
  const moved = places.length - longestRise(places);
  return moved === 0 ? { entries: after, moved } : { entries: places.flatMap((at) => after[at] ?? []), moved };
}

/** The length of the longest increasing subsequence: the rest is out of place. */
function longestRise(numbers: readonly number[]): number {
  const tails: number[] = [];
  for (const n of numbers) {
    let low = 0;
    let high = tails.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((tails[middle] ?? 0) < n) low = middle + 1;
      else high = middle;
    }
    tails[low] = n;
  }
  return tails.length;
}

export function sortRows<T>(
  rows: readonly T[],
  sort: string,
  columns: readonly Column<T>[],
  usual: (a: T, b: T) => number,
): T[] {
  const down = sort.startsWith("-");
  const compare = columns.find((c) => c.id === sort.slice(down ? 1 : 0))?.sort;
  if (!compare) return [...rows].sort(usual);
  return [...rows].sort((a, b) => (down ? -1 : 1) * compare(a, b) || usual(a, b));
}
