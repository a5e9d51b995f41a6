import type { User } from "@/api";
import { type Fields, longerAgo } from "@/filter";
import { entry } from "@/text";
import { type Holdings, isActive, isHeld, isLocal, isSuspended, needsApproval } from "./facts";
import type { Mentions } from "./mentions";

/** What filter terms mean for users, at a given time. */
export function userFilter(of: (user: User) => Holdings, mentions: Mentions | undefined, now: number): Fields<User> {
  const kinds: Record<string, (user: User) => boolean> = {
    active: (user) => isActive(of(user), now),
    idle: (user) => !isActive(of(user), now),
    empty: (user) => of(user).total === 0,
    online: (user) => of(user).online > 0,
    suspended: isSuspended,
    held: isHeld,
    unapproved: needsApproval,
  };
  return {
    text: (user, word) => [user.name, user.displayName, user.email].some((value) => value.toLowerCase().includes(word)),
    fields: {
      is: (user, value) => entry(kinds, value)?.(user) ?? false,
      group: (user, value) =>
        mentions?.groups(user).some(({ name }) => name.toLowerCase().replace(/^group:/, "") === value) ?? false,
      source: (user, value) => (isLocal(user) ? value === "local" : user.provider.toLowerCase() === value),
      seen: (user, value, op) => of(user).online === 0 && longerAgo(of(user).lastSeen, op, value, now),
      role: (user, value) => (user.role ?? "none") === value,
      name: (user, value) => user.name.toLowerCase().includes(value),
      email: (user, value) => user.email.toLowerCase().includes(value),
    },
  };
}

export const userFilterFields = ["is", "group", "source", "seen", "role", "name", "email"];
