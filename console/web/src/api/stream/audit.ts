import { compareRevisions, revisionOf } from "../revision";
import type { Change } from "../types";

/** Which changes a list contains, in the server's format. */
export interface AuditFilter {
  /** One or more, separated by commas. */
  kind?: string;
  object?: string;
  /** A kind of actor, or a single one: `key:3`. */
  actor?: string;
  /** One or more, separated by commas. */
  verb?: string;
  from?: string;
  to?: string;
}

export interface AuditPage {
  entries: Change[];
  next: string;
  /** The server had read at least up to this revision. The stream may have added later changes. */
  revision: string;
}

export interface AuditPages {
  pages: AuditPage[];
  pageParams: unknown[];
}

/** Whether the server would list a change under a filter. Presence is not in the audit log. */
export function fits(filter: AuditFilter, change: Change): boolean {
  if (change.verb === "online" || change.verb === "offline") return false;
  const among = (list: string | undefined, word: string) => !list || list.split(",").includes(word);
  const { kind, id, name } = change.actor;
  return (
    among(filter.kind, change.kind) &&
    among(filter.verb, change.verb) &&
    (!filter.object || filter.object === change.object) &&
    (!filter.actor || [kind, `${kind}:${id}`, `${kind}:${name}`].includes(filter.actor)) &&
    (!filter.from || Date.parse(filter.from) <= Date.parse(change.at)) &&
    (!filter.to || Date.parse(change.at) < Date.parse(filter.to))
  );
}

/** Adds what the stream reported after the server had read a page. */
export function withRecent(page: AuditPage, filter: AuditFilter, recent: readonly Change[]): AuditPage {
  const known = new Set(page.entries.map((entry) => entry.id));
  const fresh = recent.filter(
    (change) =>
      compareRevisions(revisionOf(change.id), page.revision) > 0 && !known.has(change.id) && fits(filter, change),
  );
  if (fresh.length === 0) return page;
  return { ...page, entries: [...fresh.reverse(), ...page.entries] };
}

/** Prepends changes from the stream to a list. Returns the same object if nothing was added. */
export function addChanges(to: AuditPages, filter: AuditFilter, changes: readonly Change[]): AuditPages {
  const [first, ...rest] = to.pages;
  const page = first && withRecent(first, filter, changes);
  return !page || page === first ? to : { ...to, pages: [page, ...rest] };
}
