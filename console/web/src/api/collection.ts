import { compareRevisions, laterRevision, revisionOf } from "./revision";
import type { Change } from "./types";

/**
 * All objects of a kind, as the cache holds them. Pages of a list and changes of the event stream come in any order;
 * of two that speak of the same object the later revision counts.
 */
export interface Collection<T> {
  items: readonly T[];
  /** What the oldest page showed. */
  revision: string;
  /** All pages are in. */
  complete: boolean;
  /** The revisions of objects that the stream told after the list. */
  told: Readonly<Record<string, string>>;
  /** The revisions at which objects went. */
  gone: Readonly<Record<string, string>>;
}

interface Named {
  id: string;
}

/** Adds a page that shows the state at a revision. The first page of a reading starts with no collection. */
export function addPage<T extends Named>(
  to: Collection<T> | undefined,
  page: readonly T[],
  revision: string,
  complete: boolean,
): Collection<T> {
  const before = to ?? { items: [], revision, complete, told: {}, gone: {} };
  const byId = new Map(before.items.map((item) => [item.id, item]));
  for (const item of page) {
    const newer = before.told[item.id] ?? before.gone[item.id];
    if (newer === undefined || compareRevisions(newer, revision) <= 0) byId.set(item.id, item);
  }
  return { ...before, items: [...byId.values()], complete };
}

/** How a change shows in an object; null leaves it out. */
export type Merge<T> = (before: T | undefined, change: Change) => T | null;

/** What the stream says is all there is to say of most objects. */
export function replace<T>(_: T | undefined, change: Change): T | null {
  return change.after as T | null;
}

/** Applies changes to a collection, in their order. It is the same object when nothing in it changed. */
export function applyChanges<T extends Named>(
  to: Collection<T>,
  changes: readonly Change[],
  merge: Merge<T> = replace,
): Collection<T> {
  const fresh = changes.filter((change) => {
    const told = to.told[change.object] ?? to.gone[change.object];
    // A list shows all of its revision; of one revision the stream may tell several changes of an object.
    return compareRevisions(revisionOf(change.id), told ?? to.revision) >= (told === undefined ? 1 : 0);
  });
  if (fresh.length === 0) return to;
  const byId = new Map(to.items.map((item) => [item.id, item]));
  const told = { ...to.told };
  const gone = { ...to.gone };
  let changed = false;
  for (const change of fresh) {
    const revision = revisionOf(change.id);
    const before = byId.get(change.object);
    const after = change.verb === "deleted" ? null : merge(before, change);
    if (after) {
      byId.set(change.object, after);
      told[change.object] = laterRevision(told[change.object] ?? "0", revision);
      delete gone[change.object];
    } else if (before || change.verb === "deleted") {
      byId.delete(change.object);
      gone[change.object] = revision;
      delete told[change.object];
    }
    changed ||= after !== (before ?? null) || change.verb === "deleted";
  }
  return changed ? { ...to, items: [...byId.values()], told, gone } : to;
}

/** Puts an object in, as the answer to a write showed it, or as a write is expected to leave it. */
export function putItem<T extends Named>(to: Collection<T>, item: T, revision?: string): Collection<T> {
  const items = to.items.some((i) => i.id === item.id)
    ? to.items.map((i) => (i.id === item.id ? item : i))
    : [...to.items, item];
  return { ...to, items, told: revision ? { ...to.told, [item.id]: revision } : to.told };
}
