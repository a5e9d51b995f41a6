import type { ClusterReplica, ClusterStandby, Relay } from "@/api";
import { clusterPage as t } from "@/text/settings";

const units = ["KiB", "MiB", "GiB", "TiB"];

/** A number of bytes in the largest unit that fits. */
export function bytes(count: number): string {
  if (count < 1024) return t.bytes(count);
  let n = count / 1024;
  let unit = 0;
  for (; n >= 1024 && unit < units.length - 1; unit++) n /= 1024;
  return `${n.toFixed(n < 10 ? 1 : 0)} ${units[unit]}`;
}

/** A duration in the unit that people would use. */
export function duration(millis: number): string {
  if (millis < 1000) return `${Math.round(millis)} ms`;
  if (millis < 60_000) return `${(millis / 1000).toFixed(1)} s`;
  return `${Math.round(millis / 60_000)} min`;
}

/** How a replica's state is marked. A replica that was stopped on purpose is not a problem. */
export const marks: Record<ClusterReplica["state"], "on" | "warn" | "off" | "bad"> = {
  active: "on",
  draining: "warn",
  stopped: "off",
  missing: "bad",
};

/** How a relay is marked. One that has not started yet is not a problem. */
export function relayMark({ state, probe }: Relay): "on" | "warn" | "off" | "bad" {
  if (state === "waiting") return "off";
  if (state === "offline" || probe?.reachable === false) return "bad";
  return state === "draining" ? "warn" : "on";
}

/** How a standby replicates, translated from the state that PostgreSQL reports. */
export function replication(sync: ClusterStandby["sync"]): string {
  return Object.hasOwn(t.syncs, sync) ? t.syncs[sync as keyof typeof t.syncs] : sync;
}

/** A finding of the server, which begins with a lower-case letter, as a sentence. */
export const sentence = (words: string) => words.charAt(0).toUpperCase() + words.slice(1);
