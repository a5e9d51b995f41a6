/** Compares revisions, which are decimal integers of any size: by length first. */
export function compareRevisions(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
}

export function laterRevision(a: string, b: string): string {
  return compareRevisions(a, b) >= 0 ? a : b;
}

/** The revision of a change, whose id is `<revision>-<index>`. */
export function revisionOf(changeId: string): string {
  return changeId.slice(0, changeId.indexOf("-"));
}
