import { useState } from "react";
import type { Node, NodeHost } from "@/api";
import { printable, text } from "@/text";
import { Badge, ColumnHead, CopyButton, Skeleton, Time } from "@/ui";
import { Fact, Facts, Section, type SummarySection } from "../parts";

const t = text.node;
const mostRelays = 5;

/** What a device reports about the network it is in. */
export default { column: "right", order: 1, Show: Network } satisfies SummarySection;

function Network({ node: { host } }: { node: Node }) {
  if (!host)
    return (
      <Section title={t.network}>
        <div role="status" aria-label={t.loadingFacts} className="space-y-3 py-1">
          <Skeleton className="w-40" />
          <Skeleton className="w-56" />
          <Skeleton className="w-48" />
        </div>
      </Section>
    );
  if (!host.reportedAt && !host.relay)
    return (
      <Section title={t.network}>
        <p className="text-ink-2">{t.unreported}</p>
      </Section>
    );
  return (
    <Section title={t.network}>
      <Facts>
        <Fact label={t.relay}>{host.relay ? printable(relayName(host.relay)) : t.noRelay}</Fact>
        <Fact label={t.nat}>
          {words(host.nat.mappingVaries, t.natHard, t.natEasy)}
          {(host.nat.portMapped || host.nat.portMapping.length > 0) && (
            <span className="block text-12 text-ink-2">
              {host.nat.portMapped ? t.portMapped : t.portMapping(host.nat.portMapping.join(", "))}
            </span>
          )}
        </Fact>
        <Fact label={t.udp}>{words(host.nat.udp, t.udpYes, t.udpNo)}</Fact>
        <Fact label={t.ipv6}>{words(host.nat.ipv6, t.ipv6Yes, t.ipv6No)}</Fact>
        {host.endpoints.length > 0 && (
          <Fact label={t.endpoints}>
            <ul>
              {host.endpoints.slice(0, 8).map((endpoint) => (
                <li key={endpoint} className="flex min-h-5 items-center gap-1 font-mono text-12">
                  <span className="min-w-0 truncate">{endpoint}</span>
                  <CopyButton value={endpoint} what={endpoint} className="-my-0.5" />
                </li>
              ))}
            </ul>
          </Fact>
        )}
        {host.reportedAt && (
          <Fact label={t.reported}>
            <Time at={host.reportedAt} />
          </Fact>
        )}
      </Facts>
      <Latencies host={host} />
      <p className="mt-4 text-12 text-ink-3">{t.networkNote}</p>
    </Section>
  );
}

const words = (fact: boolean | null, yes: string, no: string) => (fact === null ? t.unknown : fact ? yes : no);
const relayName = ({ id, code, name }: { id: number; code: string; name: string }) =>
  name && code && name !== code ? `${name} (${code})` : name || code || String(id);

function Latencies({ host }: { host: NodeHost }) {
  const [all, setAll] = useState(false);
  if (host.latencies.length === 0) return null;
  const sorted = [...host.latencies].sort((a, b) => a.milliseconds - b.milliseconds);
  const shown = all ? sorted : sorted.slice(0, mostRelays);
  const longest = Math.max(...shown.map((each) => each.milliseconds), 1);
  return (
    <>
      <table className="mt-4 w-full table-fixed text-13" aria-label={t.latency}>
        <thead className="text-left text-12 text-ink-2">
          <tr>
            <ColumnHead className="h-7 border-b border-line pr-3">{t.latencyRelay}</ColumnHead>
            <ColumnHead className="h-7 w-[60%] border-b border-line">{t.latencyTime}</ColumnHead>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ region, milliseconds }) => (
            <tr key={region.id} className="h-8">
              <td className="border-b border-hair pr-3">
                <span className="flex min-w-0 items-center gap-2">
                  <span className="truncate">{printable(relayName(region))}</span>
                  {region.id === host.relay?.id && <Badge>{t.home}</Badge>}
                </span>
              </td>
              <td className="border-b border-hair">
                <span className="flex items-center gap-2">
                  <span className="w-14 shrink-0 tabular-nums">{t.milliseconds(milliseconds)}</span>
                  <span
                    className="h-1 rounded-full bg-up"
                    style={{ width: `${Math.max(2, (milliseconds / longest) * 60)}%` }}
                    aria-hidden
                  />
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {sorted.length > shown.length && (
        <button
          type="button"
          onClick={() => setAll(true)}
          className="mt-1 h-6 text-12 font-medium text-accent-ink hover:underline"
        >
          {t.allRelays(sorted.length)}
        </button>
      )}
    </>
  );
}
