import { compareRevisions, laterRevision, revisionOf } from "./revision";
import type { Change } from "./types";

/**
 * All objects of a kind, as held in the cache. List pages and changes from the event stream arrive in any order; for
 * the same object, the later revision wins.
 */
export interface Collection<T> {
  items: readonly T[];
  /** The revision of the oldest page. */
  revision: string;
  /** Whether all pages are loaded. */
  complete: boolean;
  /** The revisions of objects that the stream reported after the list. */
  told: Readonly<Record<string, string>>;
  /** The revisions at which objects were deleted. */
  gone: Readonly<Record<string, string>>;
}

interface Named {
  id: string;
}

/** Adds a page that shows the state at a revision. For the first page of a list, there is no collection yet. */
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

/** How a change applies to an object; null removes it. */
export type Merge<T> = (before: T | undefined, change: Change) => T | null;

/** Replaces the object: for most kinds, the stream reports it completely. */
export function replace<T>(_: T | undefined, change: Change): T | null {
  return change.after as T | null;
}

/** Applies changes to a collection, in order. Returns the same collection if nothing changed. */
export function applyChanges<T extends Named>(
  to: Collection<T>,
  changes: readonly Change[],
  merge: Merge<T> = replace,
): Collection<T> {
  const fresh = changes.filter((change) => {
    const told = to.told[change.object] ?? to.gone[change.object];
    // A list includes all changes of its revision, but the stream may report several changes of an object in one
    // revision.
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

/** Adds or replaces an object, as returned by a write or as the write is expected to leave it. */
export function putItem<T extends Named>(to: Collection<T>, item: T, revision?: string): Collection<T> {
  const items = to.items.some((i) => i.id === item.id)
    ? to.items.map((i) => (i.id === item.id ? item : i))
    : [...to.items, item];
  return { ...to, items, told: revision ? { ...to.told, [item.id]: revision } : to.told };
}
