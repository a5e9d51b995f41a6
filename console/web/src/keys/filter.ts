import type { PreAuthKey } from "@/api";
import type { Fields } from "@/filter";
import { entry } from "@/text";
import { keyName, keyState } from "./facts";

/** What filter terms mean for pre-auth keys, at a given time. */
export function keyFilter(now: number): Fields<PreAuthKey> {
  const kinds: Record<string, (key: PreAuthKey) => boolean> = {
    reusable: (key) => key.reusable,
    ephemeral: (key) => key.ephemeral,
    preapproved: (key) => key.preApproved,
    usable: (key) => keyState(key, now) === "usable",
    used: (key) => key.used,
    expired: (key) => keyState(key, now) === "expired",
  };
  return {
    text: (key, word) =>
      keyName(key).toLowerCase().includes(word) ||
      key.description.toLowerCase().includes(word) ||
      (key.user?.name.toLowerCase().includes(word) ?? false) ||
      key.aclTags.some((tag) => tag.toLowerCase().includes(word)),
    fields: {
      tag: (key, value) => key.aclTags.some((tag) => tag.toLowerCase() === `tag:${value}`),
      user: (key, value) => key.user?.name.toLowerCase() === value,
      is: (key, value) => entry(kinds, value)?.(key) ?? false,
    },
  };
}

export const keyFilterFields = Object.keys(keyFilter(0).fields);
