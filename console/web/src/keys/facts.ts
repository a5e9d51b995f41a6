import type { Node, PreAuthKey } from "@/api";

export type KeyState = "usable" | "used" | "expired";

/**
 * Whether a node can still join with the key. A single-use key that was used counts as used, even if it has expired.
 */
export function keyState(key: PreAuthKey, now: number): KeyState {
  if (key.used && !key.reusable) return "used";
  return key.expired || Date.parse(key.expiration) <= now ? "expired" : "usable";
}

/** The part of a key that identifies it to people. */
export const keyName = (key: PreAuthKey) => key.key.replace(/^flp_|_\*\*\*$/g, "");

export const keyOwnerWords = (key: PreAuthKey) =>
  key.aclTags.length > 0 ? key.aclTags.join(" ") : (key.user?.name ?? "");

/** The number of existing nodes that joined with each key, by its ID. */
export function nodesByKey(nodes: readonly Node[]): ReadonlyMap<string, number> {
  const count = new Map<string, number>();
  for (const { preAuthKey } of nodes) if (preAuthKey) count.set(preAuthKey.id, (count.get(preAuthKey.id) ?? 0) + 1);
  return count;
}

const day = 864e5;

/** A key that anybody who finds it can use for a long time. */
export const isLongLived = (reusable: boolean, ends: number, now: number) => reusable && ends - now > day;

/** Parses typed tags. */
export const tagsOf = (typed: string) => [...new Set(typed.split(/[\s,]+/).filter(Boolean))].sort();
export const notATag = (tags: readonly string[]) =>
  tags.find((tag) => !/^tag:[a-zA-Z][\w.;-]*(:[a-zA-Z][\w.;-]*)*$/.test(tag));

/** Replaces the word being typed at the end of a tag list with a complete tag. */
export function completeTag(typed: string, tag: string): string {
  const words = typed.split(/[\s,]+/).filter(Boolean);
  const last = /[\s,]$/.test(typed) ? undefined : words.at(-1);
  if (last !== undefined && tag.includes(last) && tag !== last) words.pop();
  return `${[...words.filter((word) => word !== tag), tag].join(" ")} `;
}

/** Tags to offer: the ones that are not in the list yet and contain what is being typed. */
export function tagsToOffer(typed: string, known: readonly string[]): string[] {
  const words = typed.split(/[\s,]+/);
  const last = words.at(-1) ?? "";
  return known.filter((tag) => !words.slice(0, -1).includes(tag) && tag !== last && tag.includes(last));
}
