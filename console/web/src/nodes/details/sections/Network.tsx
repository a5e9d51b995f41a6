import { Link } from "@tanstack/react-router";
import { ArrowRight } from "lucide-react";
import type { Node } from "@/api";
import { printable, text } from "@/text";
import { Skeleton } from "@/ui";
import { hasReported, homeLatency } from "../connectivity/findings";
import { Fact, Facts, relayName, Section, type SummarySection } from "../parts";

const t = text.node;

/** The home relay and the NAT of a device. The tab Connectivity has the rest. */
export default { column: "right", order: 1, Show: Network } satisfies SummarySection;

function Network({ node: { id, host } }: { node: Node }) {
  if (!host)
    return (
      <Section title={t.network}>
        <div role="status" aria-label={t.loadingFacts} className="space-y-3 py-1">
          <Skeleton className="w-40" />
          <Skeleton className="w-56" />
        </div>
      </Section>
    );
  const latency = homeLatency(host);
  const nat = { true: t.natHard, false: t.natEasy, null: t.unknown }[`${host.nat.mappingVaries}`];
  return (
    <Section
      title={t.network}
      action={
        <Link
          to="/nodes/$id"
          params={{ id }}
          search={{ tab: "connectivity" } as never}
          className="inline-flex min-h-6 items-center gap-1 text-12 text-accent-ink hover:underline"
        >
          {t.showConnectivity} <ArrowRight className="size-3" aria-hidden />
        </Link>
      }
    >
      {hasReported(host) ? (
        <Facts>
          <Fact label={t.relay}>
            {host.relay ? printable(relayName(host.relay)) : t.noRelay}
            {latency !== undefined && <span className="text-ink-2"> · {t.milliseconds(latency)}</span>}
          </Fact>
          <Fact label={t.nat}>{host.nat.udp === false ? t.udpNo : nat}</Fact>
        </Facts>
      ) : (
        <p className="text-ink-2">{t.unreported}</p>
      )}
    </Section>
  );
}
