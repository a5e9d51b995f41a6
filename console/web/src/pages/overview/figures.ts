import type { Node, NodeBuckets, PreAuthKey, ServerRelay } from "@/api";
import { keyState } from "@/keys/facts";
import { isExitRoute } from "@/nodes";

/** For each interval of the last day, how many nodes were online, and how many users they belong to. */
export function courseOf(nodes: readonly Node[], presence: ReadonlyMap<string, NodeBuckets>) {
  const parts = presence.values().next().value?.online.length ?? 0;
  const online = new Array<number>(parts).fill(0);
  const users = Array.from({ length: parts }, () => new Set<string>());
  for (const node of nodes) {
    const owner = node.tags.length === 0 ? node.user?.id : undefined;
    presence.get(node.id)?.online.forEach((share, i) => {
      if (i >= parts) return;
      online[i] = (online[i] ?? 0) + share;
      if (owner && share > 0) users[i]?.add(owner);
    });
  }
  return { online: online.map(Math.round), users: users.map((set) => set.size) };
}

/**
 * The SVG path of a sparkline. Its scale starts at zero, or slightly below the minimum if that is more than half the
 * maximum.
 */
export function outline(values: readonly number[], width: number, height: number): string {
  if (values.length < 2) return "";
  const most = Math.max(...values, 1);
  const least = Math.min(...values);
  const floor = least > most / 2 ? least - Math.max(1, (most - least) / 2) : 0;
  const step = width / (values.length - 1);
  const y = (value: number) => height - 1.5 - ((value - floor) / (most - floor)) * (height - 3);
  return values.map((value, i) => `${i === 0 ? "M" : "L"}${(i * step).toFixed(1)} ${y(value).toFixed(1)}`).join(" ");
}

/** The number of networks that peers use now. The two prefixes of an exit node count as one. */
export function routesInService(nodes: readonly Node[]): number {
  const networks = new Set(nodes.flatMap((node) => node.subnetRoutes.filter((route) => !isExitRoute(route))));
  return networks.size + nodes.filter((node) => node.subnetRoutes.some(isExitRoute)).length;
}

export function usableKeys(keys: readonly PreAuthKey[], now: number): { usable: number; ending: number } {
  const usable = keys.filter((key) => keyState(key, now) === "usable");
  return { usable: usable.length, ending: usable.filter((key) => Date.parse(key.expiration) - now < 864e5).length };
}

/** A relay is healthy if an online node has heard from it. */
export const isHealthy = (relay: ServerRelay) => relay.measured > 0 || relay.homes > 0;

/** The lowest median latency of the relays, in milliseconds; null if no node has measured one. */
export function nearest(relays: readonly ServerRelay[]): number | null {
  const medians = relays.flatMap((relay) => relay.medianMilliseconds ?? []);
  return medians.length > 0 ? Math.min(...medians) : null;
}

export const millisecondWords = (ms: number) => (ms < 10 ? ms.toFixed(1) : String(Math.round(ms)));
