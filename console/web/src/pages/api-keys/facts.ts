import type { ApiKey, Role } from "@/api";
import type { Fields } from "@/filter";
import { apiKeys } from "@/text/settings";

export type ApiKeyState = "usable" | "expired";

export const apiKeyState = (key: ApiKey, now: number): ApiKeyState =>
  key.expired || Date.parse(key.expiration) <= now ? "expired" : "usable";

/** The part of a key by which people identify it. */
export const apiKeyName = (prefix: string) => prefix.replace(/^flk_|_\*\*\*$/g, "");

export const nouns = Object.keys(apiKeys.create.nouns) as (keyof typeof apiKeys.create.nouns)[];
export type Noun = (typeof nouns)[number];

/** What a key may do with a resource: nothing, read, or everything that its role may do. */
export type Grant = "" | "read" | "full";
export type Grants = Partial<Record<Noun, Grant>>;

/** The scopes for the selection, in the format of the API. */
export const scopesOf = (grants: Grants): string[] =>
  nouns.flatMap((noun) => (grants[noun] === "full" ? [noun] : grants[noun] === "read" ? [`${noun}:read`] : []));

/** The most that a key with these scopes and this role can grant for a resource. */
export function mostOf(noun: Noun, own: readonly string[], role: Role): Grant {
  if (own.length > 0 && !own.includes(noun)) return own.includes(`${noun}:read`) ? "read" : "";
  return role === "read" ? "read" : "full";
}

export const apiKeyFilterFields = ["role", "is"];

export const apiKeyFilter = (now: number): Fields<ApiKey> => ({
  text: (key, word) =>
    apiKeyName(key.prefix).toLowerCase().includes(word) ||
    key.comment.toLowerCase().includes(word) ||
    key.scopes.some((scope) => scope.includes(word)),
  fields: {
    role: (key, value) => key.role === value,
    is: (key, value) => apiKeyState(key, now) === value,
  },
});
