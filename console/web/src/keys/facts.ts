import type { Node, PreAuthKey } from "@/api";

export type KeyState = "usable" | "used" | "expired";

/**
 * Whether a key is usable, used or expired. A single-use key that was used counts as used, even if it has also expired.
 */
export function keyState(key: PreAuthKey, now: number): KeyState {
  if (key.used && !key.reusable) return "used";
  return key.expired || Date.parse(key.expiration) <= now ? "expired" : "usable";
}

/** The part of a key by which people identify it. */
export const keyName = (key: PreAuthKey) => key.key.replace(/^flp_|_\*\*\*$/g, "");

export const keyOwnerWords = (key: PreAuthKey) =>
  key.aclTags.length > 0 ? key.aclTags.join(" ") : (key.user?.name ?? "");

/** Whether a description has more bytes than the server accepts. */
export const isTooLong = (description: string) => new TextEncoder().encode(description).length > 200;

/** The number of existing nodes that joined with each key, by its ID. */
export function nodesByKey(nodes: readonly Node[]): ReadonlyMap<string, number> {
  const count = new Map<string, number>();
  for (const { preAuthKey } of nodes) if (preAuthKey) count.set(preAuthKey.id, (count.get(preAuthKey.id) ?? 0) + 1);
  return count;
}

const day = 864e5;

/** Whether anybody who finds the key could use it for a long time: it is reusable and valid for more than a day. */
export const isLongLived = (reusable: boolean, ends: number, now: number) => reusable && ends - now > day;

/** Parses typed tags. */
export const tagsOf = (typed: string) => [...new Set(typed.split(/[\s,]+/).filter(Boolean))].sort();
export const notATag = (tags: readonly string[]) =>
  tags.find((tag) => !/^tag:[a-zA-Z][\w.;-]*(:[a-zA-Z][\w.;-]*)*$/.test(tag));

/** The chips of a tag field, and the word that is still being typed after them. */
export function chipsOf(typed: string): { chips: string[]; word: string } {
  const words = typed.split(/[\s,]+/);
  const word = words.pop() ?? "";
  return { chips: [...new Set(words.filter(Boolean))], word };
}

/** Joins chips, without duplicates, and the word after them into the text of a tag field. The inverse of chipsOf. */
const typedOf = (chips: readonly string[], word: string) => [...new Set(chips), word].join(" ");

/** The value of a tag field after text was typed or pasted after its chips. */
export function typedTags(chips: readonly string[], added: string, known: readonly string[]): string {
  const { chips: words, word } = chipsOf(added);
  return typedOf([...chips, ...words.map((each) => enteredTag(each, known, chips) ?? each)], word);
}

export const withoutTag = (typed: string, tag: string) => {
  const { chips, word } = chipsOf(typed);
  return typedOf(
    chips.filter((each) => each !== tag),
    word,
  );
};

/** The tag that somebody means by a word: itself, the known tag of that name, or the only one that contains it. */
export function enteredTag(word: string, known: readonly string[], chips: readonly string[]): string | undefined {
  if (!notATag([word])) return word;
  if (known.includes(`tag:${word}`)) return `tag:${word}`;
  const fitting = known.filter((tag) => !chips.includes(tag) && tag.includes(word));
  return fitting.length === 1 ? fitting[0] : undefined;
}

/** Replaces the word being typed with a complete tag. */
export function completeTag(typed: string, tag: string): string {
  const { chips, word } = chipsOf(typed);
  const kept = tag.includes(word) ? chips : [...chips, word];
  return typedOf([...kept.filter((each) => each !== tag), tag], "");
}

/** Tags to offer: the ones that are not in the list yet and contain what is being typed. */
export function tagsToOffer(typed: string, known: readonly string[]): string[] {
  const { chips, word } = chipsOf(typed);
  return known.filter((tag) => !chips.includes(tag) && tag !== word && tag.includes(word));
}
