import { useState } from "react";
import type { NodeHost } from "@/api";
import { printable, text } from "@/text";
import { connectivity } from "@/text/connectivity";
import { Badge, ColumnHead, CopyButton, Time } from "@/ui";
import { Fact, Facts, relayName, Section } from "../parts";
import { hostOf, sortedEndpoints } from "./endpoints";

const t = connectivity;
const mostRelays = 6;
const mostEndpoints = 8;

const words = (fact: boolean | null, yes: string, no: string) => (fact === null ? text.node.unknown : fact ? yes : no);

/** What a device reports about the network it is in. */
export function Reported({ host }: { host: NodeHost }) {
  const { nat } = host;
  const endpoints = sortedEndpoints(host.endpoints);
  const address = endpoints.find(({ endpoint, kind }) => kind === "public" && !hostOf(endpoint).includes(":"));
  return (
    <Section title={t.network}>
      <Facts>
        <Fact label={text.node.relay}>{host.relay ? printable(relayName(host.relay)) : text.node.noRelay}</Fact>
        <Fact label={t.udp}>{words(nat.udp, t.udpYes, t.udpNo)}</Fact>
        <Fact label={t.nat}>{words(nat.mappingVaries, t.natHard, t.natEasy)}</Fact>
        <Fact label={t.portMapping}>
          {nat.portMapped
            ? t.portMapped
            : nat.portMapping.length > 0
              ? t.portOffered(printable(nat.portMapping.join(", ")))
              : t.portNone}
        </Fact>
        <Fact label={t.ipv4}>{address ? t.ipv4Yes(hostOf(address.endpoint)) : t.ipv4No}</Fact>
        <Fact label={t.ipv6}>{words(nat.ipv6, t.ipv6Yes, t.ipv6No)}</Fact>
        <Fact label={t.endpoints}>
          <Endpoints endpoints={endpoints} />
        </Fact>
        {host.reportedAt && (
          <Fact label={t.reported}>
            <Time at={host.reportedAt} />
          </Fact>
        )}
      </Facts>
    </Section>
  );
}

function Endpoints({ endpoints }: { endpoints: ReturnType<typeof sortedEndpoints> }) {
  const [all, setAll] = useState(false);
  if (endpoints.length === 0) return t.noEndpoints;
  const shown = all ? endpoints : endpoints.slice(0, mostEndpoints);
  return (
    <>
      <ul>
        {shown.map(({ endpoint, kind }) => (
          <li key={endpoint} className="flex min-h-6 flex-wrap items-center gap-x-1 text-12">
            <span className="flex min-w-0 items-center gap-1">
              <span className="min-w-0 font-mono break-all">{endpoint}</span>
              <CopyButton value={endpoint} what={endpoint} className="-my-0.5" />
            </span>
            <Badge>{t.kinds[kind]}</Badge>
          </li>
        ))}
      </ul>
      {endpoints.length > shown.length && <More onClick={() => setAll(true)}>{t.moreEndpoints(endpoints.length)}</More>}
    </>
  );
}

const More = ({ children, onClick }: { children: string; onClick(): void }) => (
  <button
    type="button"
    onClick={onClick}
    className="mt-1 h-6 text-12 font-medium text-accent-ink hover:underline max-md:h-9"
  >
    {children}
  </button>
);

/** The measured latencies to relays, the shortest first. */
export function Latencies({ host }: { host: NodeHost }) {
  const [all, setAll] = useState(false);
  const sorted = [...host.latencies].sort((a, b) => a.milliseconds - b.milliseconds);
  const home = sorted.findIndex(({ region }) => region.id === host.relay?.id);
  // The home relay is always shown, even if others are closer.
  const shown = all ? sorted : sorted.filter((_, at) => at < mostRelays || at === home);
  const longest = Math.max(...shown.map((each) => each.milliseconds), 1);
  return (
    <Section title={t.latency}>
      {sorted.length === 0 ? (
        <p className="text-13 text-ink-2">{t.noLatency}</p>
      ) : (
        <table className="w-full table-fixed text-13" aria-label={t.latency}>
          <thead className="text-left text-12 text-ink-2">
            <tr>
              <ColumnHead className="h-7 border-b border-line pr-3">{t.latencyRelay}</ColumnHead>
              <ColumnHead className="h-7 w-[55%] border-b border-line">{t.latencyTime}</ColumnHead>
            </tr>
          </thead>
          <tbody>
            {shown.map(({ region, milliseconds }) => {
              const isHome = region.id === host.relay?.id;
              return (
                <tr key={region.id} className="h-8">
                  <td className="border-b border-hair pr-3">
                    <span className="flex min-w-0 items-center gap-2">
                      <span className={isHome ? "truncate font-medium" : "truncate"}>
                        {printable(relayName(region))}
                      </span>
                      {isHome && <Badge tone="accent">{t.home}</Badge>}
                    </span>
                  </td>
                  <td className="border-b border-hair">
                    <span className="flex items-center gap-2">
                      <span className="w-14 shrink-0 tabular-nums">{text.node.milliseconds(milliseconds)}</span>
                      <span
                        className={`h-1.5 rounded-full ${isHome ? "bg-accent" : "bg-up"}`}
                        style={{ width: `${Math.max(2, (milliseconds / longest) * 60)}%` }}
                        aria-hidden
                      />
                    </span>
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
      {sorted.length > shown.length && <More onClick={() => setAll(true)}>{t.allRelays(sorted.length)}</More>}
    </Section>
  );
}
