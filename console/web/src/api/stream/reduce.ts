import type { Change, Node, User } from "../types";

/**
 * How a change applies to a node in the cache. The recorded node does not say whether its device is connected, so
 * presence comes only from presence events.
 */
export function mergeNode(before: Node | undefined, change: Change): Node | null {
  if (change.verb === "online" || change.verb === "offline") {
    return before ? { ...before, online: change.verb === "online", lastSeen: change.at } : null;
  }
  const after = change.after as Node | null;
  if (!after) return null;
  return before ? { ...after, online: before.online, lastSeen: before.lastSeen } : after;
}

/** What of a user decides their role, apart from the configuration. */
const roleBasis = (user: Partial<User> | null) =>
  JSON.stringify([user?.assignedRole, user?.groups ?? [], user?.providerId ?? "", user?.needsApproval ?? false]);

/**
 * How a change applies to a user in the cache. The recorded user lacks the role, which depends on the server's
 * configuration. It stays the same if nothing has changed that it depends on.
 */
export function mergeUser(before: User | undefined, change: Change): User | null {
  const after = change.after as User | null;
  if (!after || after.role !== undefined) return after;
  if (before && roleBasis(before) === roleBasis(after))
    return { ...after, role: before.role, roleGroup: before.roleGroup };
  return after.assignedRole && !after.needsApproval ? { ...after, role: after.assignedRole } : after;
}

function userOutdates(change: Change): Part[] {
  const before = change.before as Partial<User> | null;
  const after = change.after as Partial<User> | null;
  return after && roleBasis(before) !== roleBasis(after) ? ["audit", "access", "users"] : ["audit", "access"];
}

type Part =
  | "routes"
  | "logins"
  | "ssh"
  | "dns"
  | "policy"
  | "audit"
  | "webhooks"
  | "presence"
  | "users"
  | "access"
  | "sessions"
  | "passkeys";

/** What else a change invalidates, among the data that the stream does not report completely. */
export function outdatedBy(change: Change): Part[] {
  switch (change.kind) {
    case "node":
      return nodeOutdates(change);
    case "user":
      return userOutdates(change);
    case "login":
      return ["logins", "audit"];
    case "sshgrant":
      return ["ssh", "audit"];
    case "policy":
      return ["policy", "routes", "audit", "access"];
    case "dns":
      return ["dns", "audit"];
    case "passkey":
      return ["passkeys", "audit"];
    case "session":
      return ["sessions", "audit"];
    case "webhook":
      return ["webhooks", "audit"];
    default:
      return ["audit"];
  }
}

function nodeOutdates(change: Change): Part[] {
  if (change.verb === "online" || change.verb === "offline") return ["presence", "routes"];
  const before = change.before as Partial<Node> | null;
  const after = change.after as Partial<Node> | null;
  const parts: Part[] = ["audit", "access"];
  const routes = (n: Partial<Node> | null) =>
    JSON.stringify([
      n?.availableRoutes ?? [],
      n?.approvedRoutes ?? [],
      n?.subnetRoutes ?? [],
      n?.routePreferences ?? {},
    ]);
  if (routes(before) !== routes(after) || (before && before.givenName !== after?.givenName)) parts.push("routes");
  // A user includes the number of nodes it owns.
  if (before?.user?.id !== after?.user?.id || !before !== !after) parts.push("users");
  return parts;
}
