import type { DNS, Node } from "@/api";
import { entry } from "@/text";

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

const names = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
export const compareText = (a: string, b: string) => names.compare(a, b);
export const byName = (a: Node, b: Node) => names.compare(a.givenName, b.givenName);

/** How often it went and came back within a summary of its presence. */
export function outages(presence: readonly number[] | undefined): number {
  if (!presence) return 0;
  let count = 0;
  let was = false;
  let down = false;
  for (const share of presence) {
    const up = share > 0.5;
    if (up && down && was) count++;
    if (up) was = true;
    down = !up;
  }
  return count;
}

/** Whether a person should look: of servers, that is of tagged nodes, also when they are away or unsteady. */
export function needsAttention(node: Node, presence: readonly number[] | undefined, now: number): boolean {
  if (node.expired || waitingRoutes(node).length > 0) return true;
  if (node.tags.length === 0 || node.ephemeral) return false;
  const awayToday = !node.online && now - Date.parse(node.lastSeen) < 864e5;
  return awayToday || outages(presence) > 1;
}

/** The newest version that any node runs: what an older one could be updated to. */
export function newestVersion(nodes: readonly Node[]): string {
  return nodes.reduce(
    (newest, { clientVersion }) =>
      names.compare(shortVersion(clientVersion), newest) > 0 ? shortVersion(clientVersion) : newest,
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
