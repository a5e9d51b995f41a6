import type { Node, User } from "@/api";
import { entry, printable } from "@/text";
import { userWords } from "@/text/users";

/**
 * Whether a user was created by an administrator. Such users sign in with passkeys, if at all; others come from an
 * identity provider.
 */
export const isLocal = (user: User) => user.provider === "" || user.provider === "local";

export type PersonRole = "member" | "read" | "operator" | "admin";

/** The name of a user's role. Empty if the user has none, because nobody can sign in as this user. */
export const roleName = (user: User) => entry(userWords.role.names, user.role ?? "") ?? user.role ?? "";

/** A user's role, and where it comes from. */
export function roleSource(user: User): string {
  const t = userWords.role;
  const name = roleName(user);
  if (!name) return needsApproval(user) ? t.sources.waiting : t.sources.none;
  if (user.assignedRole) return t.sources.assigned(name);
  return user.roleGroup ? t.sources.group(name, printable(user.roleGroup)) : t.sources.usual(name);
}

export const isSuspended = (user: User) => user.suspendedAt !== undefined;

/** Whether a user would have been suspended, but keeps access until an administrator decides. */
export const isHeld = (user: User) => user.suspensionHeldAt !== undefined;

export const needsApproval = (user: User) => user.needsApproval === true;

/** A summary of a user's nodes. Tagged nodes belong to their tags. */
export interface Holdings {
  total: number;
  online: number;
  /** When one of them was last online; null without nodes. */
  lastSeen: string | null;
}

const nothing: Holdings = { total: 0, online: 0, lastSeen: null };

/**
 * Returns a function that maps a user to a summary of the user's nodes. While part of the nodes is missing, the
 * server's own count is used.
 */
export function holdingsOf(nodes: readonly Node[], complete = true): (user: User) => Holdings {
  const all = new Map<string, Holdings>();
  for (const node of nodes) {
    if (node.tags.length > 0 || !node.user) continue;
    const before = all.get(node.user.id) ?? nothing;
    const later = before.lastSeen === null || node.lastSeen > before.lastSeen ? node.lastSeen : before.lastSeen;
    all.set(node.user.id, {
      total: before.total + 1,
      online: before.online + (node.online ? 1 : 0),
      lastSeen: later,
    });
  }
  return (user) => {
    const has = all.get(user.id) ?? nothing;
    return complete ? has : { ...has, total: user.nodeCount };
  };
}

export const nodesOf = (nodes: readonly Node[], user: User) =>
  nodes.filter((node) => node.tags.length === 0 && node.user?.id === user.id);

/** The tagged nodes that a user added. They belong to their tags, so they outlive the user. */
export const taggedBy = (nodes: readonly Node[], user: User) =>
  nodes.filter((node) => node.tags.length > 0 && node.createdBy?.id === user.id);

/** Whether a user has a node that is online, or was within the last 24 hours. */
export function isActive({ online, lastSeen }: Holdings, now: number): boolean {
  return online > 0 || (lastSeen !== null && now - Date.parse(lastSeen) < 864e5);
}

/** Whether a name follows the server's rule: a letter, then letters, digits and . _ - @. */
export const isUserName = (name: string) => /^[a-zA-Z][a-zA-Z0-9._@-]{0,254}$/.test(name);
