import type { DNS, Node, NodeBuckets } from "@/api";
import { compareText, entry } from "@/text";

const exits = ["0.0.0.0/0", "::/0"];
export const isExitRoute = (prefix: string) => exits.includes(prefix);

export type NodeState = "online" | "offline" | "expired";

export function stateOf(node: Node): NodeState {
  return node.expired ? "expired" : node.online ? "online" : "offline";
}

/** Routes that the node offers and nobody has approved. An exit node is one thing, of two prefixes. */
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

/** A system as its maker writes it; one that is not known as the device does. */
export const systemName = (os: string) => entry(systems, os.toLowerCase()) ?? os;

/** The owner is a user or tags, never both. */
export function ownerOf(node: Node): { tags: string[] } | { user: string } {
  return node.tags.length > 0 ? { tags: node.tags } : { user: node.user?.name ?? "" };
}

export const ownerWords = (node: Node) => (node.tags.length > 0 ? node.tags.join(" ") : (node.user?.name ?? ""));
export const ipv4Of = (node: Node) => node.ipAddresses.find((a) => a.includes(".")) ?? node.ipAddresses[0] ?? "";
export const ipv6Of = (node: Node) => node.ipAddresses.find((a) => a.includes(":")) ?? "";

export const byName = (a: Node, b: Node) => compareText(a.givenName, b.givenName);

/** Whether being away is an outage: of servers, not of laptops that somebody closed. */
export const isServer = (node: Node) => node.tags.length > 0 && !node.ephemeral;

/** How often a node went away within a summary of its presence. From how it is now follows how it began. */
export function outages(node: Node, presence: NodeBuckets | undefined): number {
  const pairs = (presence?.changes ?? 0) / 2;
  return node.online ? Math.floor(pairs) : Math.ceil(pairs);
}

/** What of a node is not in the node itself. */
export interface Around {
  presence: ReadonlyMap<string, NodeBuckets> | undefined;
  /** Tags that have owners in the policy; undefined when that is not known, or when any tag will do. */
  owned: ReadonlySet<string> | undefined;
  now: number;
}

/** Whether a person should look: of servers also when they are away or unsteady. */
export function needsAttention(node: Node, { presence, owned, now }: Around): boolean {
  if (node.expired || waitingRoutes(node).length > 0) return true;
  if (owned && node.tags.some((tag) => !owned.has(tag))) return true;
  if (!isServer(node)) return false;
  const awayToday = !node.online && now - Date.parse(node.lastSeen) < 864e5;
  return awayToday || outages(node, presence?.get(node.id)) > 1;
}

/** The newest version that any node runs: what an older one could be updated to. */
export function newestVersion(nodes: readonly Node[]): string {
  return nodes.reduce(
    (newest, { clientVersion }) =>
      compareText(shortVersion(clientVersion), newest) > 0 ? shortVersion(clientVersion) : newest,
    "",
  );
}

/** Without the marks of the build. */
export const shortVersion = (version: string) => version.split("-")[0] ?? "";

/** A name in the form that DNS takes: what a person types becomes it before their eyes. */
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

/** The name by which devices find a node: with the domain of the network, if it has one. */
export const fullName = (name: string, dns: DNS | undefined) =>
  dns?.magicDNS && dns.baseDomain ? `${name}.${dns.baseDomain}` : name;
