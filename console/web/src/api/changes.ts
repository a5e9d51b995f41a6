import { useState } from "react";
import { ApiError } from "./client";

/** What is there now, when a write was refused because somebody else was quicker. */
export const currentOf = <T>(error: unknown): T | null =>
  error instanceof ApiError && error.stale ? ((error.problem.current as T | undefined) ?? null) : null;

/** A thing as it is now without what was expected of a write that failed. What somebody else has set meanwhile stays. */
export function takenBack<T extends object>(now: T, expected: Partial<T>, before: T): T {
  const back = { ...now };
  for (const name of Object.keys(expected) as (keyof T)[]) {
    if (now[name] === expected[name]) back[name] = before[name];
  }
  return back;
}

/**
 * Takes a write back that left this ETag. When the thing has changed since, `ours` says whether in something else, so
 * that what somebody else set is never undone.
 */
export async function undone<T>(
  etag: string | null,
  write: (ifMatch: string | null) => Promise<unknown>,
  ours: (now: T) => boolean,
) {
  try {
    await write(etag);
  } catch (error) {
    const now = currentOf<T>(error);
    if (!now || !ours(now)) throw error;
    await write(null);
  }
}

/** An ETag, or one that is on its way. Without it a change holds whatever happened before. */
export type IfMatch = string | null | Promise<string | null>;

/**
 * What If-Match takes, asked for when somebody begins to change a thing. A write waits for it: sent without, it would
 * overwrite what others do meanwhile.
 */
export function useEtag(read: () => Promise<string | null>): IfMatch {
  const [etag] = useState(() => {
    const asked = read();
    asked.catch(() => {}); // whoever waits for it is told
    return asked;
  });
  return etag;
}
