import type { Change, Node } from "../types";

/**
 * What a change does to a node in the cache. The recorded node does not know whether its device is connected, so that
 * presence comes from the events of presence alone.
 */
export function mergeNode(before: Node | undefined, change: Change): Node | null {
  if (change.verb === "online" || change.verb === "offline") {
    return before ? { ...before, online: change.verb === "online", lastSeen: change.at } : null;
  }
  const after = change.after as Node | null;
  if (!after) return null;
  return before ? { ...after, online: before.online, lastSeen: before.lastSeen } : after;
}

type Part = "routes" | "logins" | "ssh" | "dns" | "policy" | "audit" | "webhooks" | "presence" | "users" | "access";

/** What else is out of date after a change, of what the stream does not tell whole. */
export function outdatedBy(change: Change): Part[] {
  switch (change.kind) {
    case "node":
      return nodeOutdates(change);
    case "user":
      return ["audit", "access"];
    case "login":
      return ["logins", "audit"];
    case "sshgrant":
      return ["ssh", "audit"];
    case "policy":
      return ["policy", "routes", "audit", "access"];
    case "dns":
      return ["dns", "audit"];
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
  // A user knows how many nodes it owns.
  if (before?.user?.id !== after?.user?.id || !before !== !after) parts.push("users");
  return parts;
}
