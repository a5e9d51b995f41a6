import type { Node, NodeHost } from "@/api";

/** The latency to the home relay above which relayed connections are noticeably slow. */
const farRelay = 100;

export type FindingKind =
  | "expired"
  | "offline"
  | "unreported"
  | "noRelay"
  | "unknownRelay"
  | "udp"
  | "hardNat"
  | "farRelay"
  | "fine";

export interface Finding {
  kind: FindingKind;
  level: "bad" | "warn" | "info" | "ok";
  /** The latency to the home relay; set only for farRelay. */
  milliseconds?: number;
}

/** Whether a device has reported anything about its network. */
export const hasReported = (host: NodeHost) => host.reportedAt !== null || host.relay !== null;

/** The measured latency to the home relay. */
export const homeLatency = ({ relay, latencies }: NodeHost) =>
  latencies.find(({ region }) => region.id === relay?.id)?.milliseconds;

/** Why a device may be unreachable, relayed or slow, as far as the server can tell; the worst first. */
export function findingsOf(node: Node, host: NodeHost): Finding[] {
  const found: Finding[] = [];
  if (node.expired) found.push({ kind: "expired", level: "bad" });
  if (!node.online) found.push({ kind: "offline", level: "warn" });
  if (!hasReported(host)) return [...found, { kind: "unreported", level: "info" }];
  if (!host.relay) found.push({ kind: "noRelay", level: "bad" });
  else if (!host.relay.code && !host.relay.name) found.push({ kind: "unknownRelay", level: "bad" });
  if (host.nat.udp === false) found.push({ kind: "udp", level: "warn" });
  else if (host.nat.mappingVaries && !host.nat.portMapped) found.push({ kind: "hardNat", level: "warn" });
  const milliseconds = homeLatency(host);
  if (milliseconds !== undefined && milliseconds > farRelay)
    found.push({ kind: "farRelay", level: "warn", milliseconds });
  return found.length > 0 ? found : [{ kind: "fine", level: "ok" }];
}
