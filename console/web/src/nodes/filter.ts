import type { Node, NodeHost } from "@/api";
import { comparesVersion, type Fields, longerAgo, prefixContains, type Term } from "@/filter";
import { entry } from "@/text";
import { isExitNode, stateOf, subnetsOf, waitingRoutes } from "./facts";

const kinds: Record<string, (node: Node) => boolean> = {
  online: (node) => stateOf(node) === "online",
  offline: (node) => stateOf(node) === "offline",
  expired: (node) => node.expired,
  ephemeral: (node) => node.ephemeral,
  exit: isExitNode,
  router: (node) => subnetsOf(node).length > 0,
  waiting: (node) => waitingRoutes(node).length > 0,
  unapproved: (node) => node.needsApproval,
};

export type Hosts = ReadonlyMap<string, NodeHost>;

/** What filter terms mean for nodes, at a given time. */
export function nodeFilter(now: number, hosts?: Hosts): Fields<Node> {
  return {
    text: (node, word) =>
      node.givenName.toLowerCase().includes(word) ||
      node.hostname.toLowerCase().includes(word) ||
      node.ipAddresses.some((address) => address.startsWith(word)),
    fields: {
      tag: (node, value) => node.tags.some((tag) => tag.toLowerCase() === `tag:${value}`),
      user: (node, value) => node.tags.length === 0 && node.user?.name.toLowerCase() === value,
      os: (node, value) => node.os.toLowerCase().includes(value),
      version: (node, value, op) => comparesVersion(node.clientVersion, op, value),
      is: (node, value) => entry(kinds, value)?.(node) ?? false,
      seen: (node, value, op) => !node.online && longerAgo(node.lastSeen, op, value, now),
      route: (node, value) =>
        node.availableRoutes.some((route) => prefixContains(value, route) || prefixContains(route, value)),
      relay: (node, value) => hosts?.get(node.id)?.relay?.code.toLowerCase() === value,
      key: (node, value) =>
        node.preAuthKey?.id === value || (node.preAuthKey?.key.toLowerCase().includes(value) ?? false),
      name: (node, value) => node.givenName.toLowerCase().includes(value),
    },
  };
}

/** Whether a filter needs what only the devices themselves report. */
export const asksHosts = (terms: readonly Term[]) => terms.some(({ field }) => field === "relay");

/**
 * The minimum number of days offline that a filter asks for, if it is so long that the devices may be gone for good.
 */
export function staleAge(terms: readonly Term[]): number | null {
  const term = terms.find(({ field, op, negated }) => field === "seen" && op === ">" && !negated);
  const days = Number(/^(\d+)d$/.exec(term?.values[0] ?? "")?.[1] ?? 0);
  return days >= 30 ? days : null;
}

export const nodeFilterFields = Object.keys(nodeFilter(0).fields);
