import { useState } from "react";
import { ApiError } from "./client";

/** The current object, if a write failed because somebody else changed it first. */
export const currentOf = <T>(error: unknown): T | null =>
  error instanceof ApiError && error.stale ? ((error.problem.current as T | undefined) ?? null) : null;

/**
 * The current object without the expected result of a failed write. Changes that somebody else made in the meantime are
 * kept.
 */
export function takenBack<T extends object>(now: T, expected: Partial<T>, before: T): T {
  const back = { ...now };
  for (const name of Object.keys(expected) as (keyof T)[]) {
    if (now[name] === expected[name]) back[name] = before[name];
  }
  return back;
}

/**
 * Undoes a write that returned this ETag. If the object has changed since, `ours` reports whether only other fields
 * changed, so that another person's change is never undone.
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

/** An ETag, or a promise of one. Without it, a write is unconditional. */
export type IfMatch = string | null | Promise<string | null>;

/**
 * The value for If-Match, requested when somebody starts to change an object. A write waits for it, because otherwise
 * it would overwrite what others do in the meantime.
 */
export function useEtag(read: () => Promise<string | null>): IfMatch {
  const [etag] = useState(() => {
    const asked = read();
    asked.catch(() => {}); // the caller that awaits it gets the error
    return asked;
  });
  return etag;
}
