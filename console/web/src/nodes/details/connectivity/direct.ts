import type { NodeHost } from "@/api";
import { sameNetwork } from "./endpoints";

export type Chance = "likely" | "unlikely" | "unknown";

/** Which of the two devices a reason is about. */
export type Who = "this" | "peer" | "both";

/** What decides whether a direct connection is likely. */
export type Why = "udp" | "lan" | "ipv6" | "portMapped" | "hardBoth" | "hardOne" | "easy" | "unreported";

export interface Direct {
  chance: Chance;
  why: Why;
  who: Who;
}

/** Which of the two devices a condition holds for, if any. */
function whoOf(mine: boolean, theirs: boolean): Who | null {
  if (mine && theirs) return "both";
  return mine ? "this" : theirs ? "peer" : null;
}

/**
 * How likely a direct connection between two devices is, judging from what both report. It is a guess: devices report
 * how their router maps ports, but neither which packets it accepts nor which connections they use.
 */
export function directBetween(mine: NodeHost | undefined, theirs: NodeHost | undefined): Direct {
  const [a, b] = [mine?.nat, theirs?.nat];
  const blocked = whoOf(a?.udp === false, b?.udp === false);
  if (blocked) return { chance: "unlikely", why: "udp", who: blocked };
  if (mine && theirs && sameNetwork(mine.endpoints, theirs.endpoints))
    return { chance: "likely", why: "lan", who: "both" };
  if (a?.ipv6 && b?.ipv6) return { chance: "likely", why: "ipv6", who: "both" };
  if (!a || !b || a.udp === null || b.udp === null) {
    const silent = whoOf((a?.udp ?? null) === null, (b?.udp ?? null) === null) ?? "both";
    return { chance: "unknown", why: "unreported", who: silent };
  }
  // A mapped port can be reached from anywhere, even by a device behind a hard NAT.
  const mapped = whoOf(a.portMapped, b.portMapped);
  if (mapped) return { chance: "likely", why: "portMapped", who: mapped };
  const silent = whoOf(a.mappingVaries === null, b.mappingVaries === null);
  if (silent) return { chance: "unknown", why: "unreported", who: silent };
  const hard = whoOf(a.mappingVaries === true, b.mappingVaries === true);
  if (hard === "both") return { chance: "unlikely", why: "hardBoth", who: hard };
  // It depends on what the other router accepts, which no device reports.
  if (hard) return { chance: "unknown", why: "hardOne", who: hard };
  return { chance: "likely", why: "easy", who: "both" };
}
