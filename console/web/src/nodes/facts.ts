import type { DNS, Node, NodeBuckets } from "@/api";
import { compareText, entry } from "@/text";

const exits = ["0.0.0.0/0", "::/0"];
export const isExitRoute = (prefix: string) => exits.includes(prefix);

export type NodeState = "online" | "offline" | "expired";

export function stateOf(node: Node): NodeState {
  return node.expired ? "expired" : node.online ? "online" : "offline";
}

/** Advertised routes that are not approved. The two prefixes of an exit node count as one. */
export function waitingRoutes(node: Node): string[] {
  const waiting = node.availableRoutes.filter((route) => !node.approvedRoutes.includes(route));
  return waiting.filter((route) => route !== "::/0" || !waiting.includes("0.0.0.0/0"));
}

export function subnetsOf(node: Node): string[] {
  return node.approvedRoutes.filter((route) => !isExitRoute(route) && node.availableRoutes.includes(route));
}

export function isExitNode(node: Node): boolean {
  return node.approvedRoutes.some((route) => isExitRoute(route) && node.availableRoutes.includes(route));
}

const systems: Record<string, string> = {
  android: "Android",
  darwin: "macOS",
  freebsd: "FreeBSD",
  ios: "iOS",
  linux: "Linux",
  macos: "macOS",
  openbsd: "OpenBSD",
  tvos: "tvOS",
  windows: "Windows",
};

/** The official name of an operating system; an unknown one as the device reports it. */
export const systemName = (os: string) => entry(systems, os.toLowerCase()) ?? os;

/** The owner is a user or tags, never both. */
export function ownerOf(node: Node): { tags: string[] } | { user: string } {
  return node.tags.length > 0 ? { tags: node.tags } : { user: node.user?.name ?? "" };
}

export const ownerWords = (node: Node) => (node.tags.length > 0 ? node.tags.join(" ") : (node.user?.name ?? ""));
export const ipv4Of = (node: Node) => node.ipAddresses.find((a) => a.includes(".")) ?? node.ipAddresses[0] ?? "";
export const ipv6Of = (node: Node) => node.ipAddresses.find((a) => a.includes(":")) ?? "";

export const byName = (a: Node, b: Node) => compareText(a.givenName, b.givenName);

/** Whether being offline is an outage: for servers it is, for a closed laptop it is not. */
export const isServer = (node: Node) => node.tags.length > 0 && !node.ephemeral;

/**
 * How often a node went offline within a presence summary. If the number of changes is odd, the current state tells
 * whether the last one was an outage.
 */
export function outages(node: Node, presence: NodeBuckets | undefined): number {
  const pairs = (presence?.changes ?? 0) / 2;
  return node.online ? Math.floor(pairs) : Math.ceil(pairs);
}

/** Data about nodes that is not part of the node itself. */
export interface Around {
  presence: ReadonlyMap<string, NodeBuckets> | undefined;
  /** Tags that have owners in the policy; undefined while unknown, and where any tag is allowed. */
  owned: ReadonlySet<string> | undefined;
  now: number;
}

export type Attention = "approval" | "expired" | "waiting" | "unowned" | "offline" | "flapping";

/** Why the node needs attention, if it does. For servers, also if they are offline or unstable. */
export function attentionOf(node: Node, { presence, owned, now }: Around): Attention | null {
  if (node.needsApproval) return "approval";
  if (node.expired) return "expired";
  if (waitingRoutes(node).length > 0) return "waiting";
  if (owned && node.tags.some((tag) => !owned.has(tag))) return "unowned";
  if (!isServer(node)) return null;
  if (!node.online && now - Date.parse(node.lastSeen) < 864e5) return "offline";
  return outages(node, presence?.get(node.id)) > 1 ? "flapping" : null;
}

/** The newest version that any node runs, to which older ones could be updated. */
export function newestVersion(nodes: readonly Node[]): string {
  return nodes.reduce(
    (newest, { clientVersion }) =>
      compareText(shortVersion(clientVersion), newest) > 0 ? shortVersion(clientVersion) : newest,
    "",
  );
}

/** The version without build suffixes. */
export const shortVersion = (version: string) => version.split("-")[0] ?? "";

/** Converts a name to a valid DNS label while it is being typed. */
export function dnsName(typed: string): string {
  return typed
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[\s._]+/g, "-")
    .replace(/[^a-z0-9-]/g, "")
    .replace(/-{2,}/g, "-")
    .replace(/^-|-$/g, "")
    .slice(0, 63);
}

/** The name by which devices find a node, including the network's domain if there is one. */
export const fullName = (name: string, dns: DNS | undefined) =>
  dns?.magicDNS && dns.baseDomain ? `${name}.${dns.baseDomain}` : name;
