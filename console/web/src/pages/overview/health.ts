import type { ServerState } from "@/api";
import { entry, printable } from "@/text";
import { overviewWords } from "@/text/overview";
import { millisecondWords } from "./figures";

const t = overviewWords.health;

export interface HealthLine {
  id: string;
  name: string;
  status: "pass" | "warn" | "fail";
  /** Null if unknown. */
  since: string | null;
  words: string;
}

/** One sentence for each part of the server. */
export function healthLines(server: ServerState, versions: { server: string; console: string }): HealthLine[] {
  const lines: HealthLine[] = server.checks.map((check) => ({
    id: check.part,
    name: entry(t.parts, check.part) ?? printable(check.part),
    status: check.status,
    since: check.part === "service" && check.status === "pass" ? server.startedAt : check.since,
    words: check.output.length > 0 ? printable(check.output.join(" "), 400) : wellWords(check.part, server),
  }));
  const same = versions.server === versions.console;
  lines.push({
    id: "versions",
    name: t.versions,
    status: same ? "pass" : "warn",
    since: null,
    words: same ? t.sameVersion(versions.server) : t.otherVersion(versions.server, versions.console),
  });
  return lines;
}

const mostRelays = 3;

function wellWords(part: string, server: ServerState): string {
  switch (part) {
    case "service":
      return t.well.service(server.url);
    case "database":
      return t.well.database(t.engines[server.database]);
    case "policy":
      return t.well.policy;
    case "replicas":
      return t.well.replicas(Math.max(1, server.replicas.length));
    case "clock":
      return t.well.clock;
    case "relay": {
      if (server.relays.every((relay) => relay.medianMilliseconds === null)) return t.noRelays;
      const each = server.relays.map(({ region, medianMilliseconds }) => {
        const name = printable(region.name || region.code, 40);
        return medianMilliseconds === null
          ? t.relayUnmeasured(name)
          : t.relay(name, millisecondWords(medianMilliseconds));
      });
      const rest = each.length > mostRelays ? [t.relayMore(each.length - mostRelays)] : [];
      return `${t.relayLead}${[...each.slice(0, mostRelays), ...rest].join(", ")}.`;
    }
    default:
      return t.states.pass;
  }
}
