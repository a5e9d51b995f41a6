import type { Webhook } from "@/api";
import { printable } from "@/text";

/** The longest description that the server accepts. */
export const longestDescription = 200;

export type WebhookState = "ok" | "failing" | "disabled" | "unused";

export function stateOf({ enabled, delivery }: Pick<Webhook, "enabled" | "delivery">): WebhookState {
  if (!enabled) return "disabled";
  if (delivery.failures > 0) return "failing";
  return delivery.lastSuccess || delivery.lastFailure ? "ok" : "unused";
}

/**
 * The host of a receiver, which people recognise it by. Keys without permission to see the whole URL get only the host.
 */
export function hostOf(url: string): string {
  try {
    return printable(new URL(url).host);
  } catch {
    return printable(url);
  }
}

/** Whether a URL looks valid. Only the server can decide whether it accepts it. */
export function isReceiver(url: string): boolean {
  try {
    const { protocol, hostname } = new URL(url);
    return /^https?:$/.test(protocol) && hostname !== "";
  } catch {
    return false;
  }
}

/** The event names in a line, without duplicates. */
export const eventsOf = (typed: string): string[] => [...new Set(typed.split(/[\s,]+/).filter(Boolean))];

const kinds = [
  "user",
  "node",
  "preauthkey",
  "apikey",
  "session",
  "login",
  "passkey",
  "invitation",
  "reservation",
  "sshgrant",
  "policy",
  "dns",
  "webhook",
  "relay",
  "clock",
  "noisekey",
];
const verbs = ["created", "changed", "deleted", "*"];
const types = [
  "nodeCreated",
  "nodeApproved",
  "nodeKeyExpired",
  "nodeDeleted",
  "userCreated",
  "userDeleted",
  "userSuspended",
  "userRestored",
  "policyUpdate",
];

/** Whether the server knows an event of this name, or a kind with .* for all its events. */
export function isEvent(name: string): boolean {
  const [kind = "", verb, ...more] = name.split(".");
  if (verb === undefined) return types.includes(name);
  if (more.length > 0 || !kinds.includes(kind)) return false;
  return verbs.includes(verb) || (kind === "node" && (verb === "online" || verb === "offline"));
}

/** The events that a form offers, except those it already has. */
export const eventsToOffer = (chosen: readonly string[]): string[] =>
  ["node.*", "user.*", "policy.*", "login.*", "node.created", "node.deleted", "node.online", "node.offline"].filter(
    (name) => !chosen.includes(name) && !chosen.includes(name.replace(/\..*$/, ".*")),
  );
