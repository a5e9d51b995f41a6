import { CircleAlert, CircleCheck, Info, TriangleAlert } from "lucide-react";
import { type Node, useCan } from "@/api";
import { text } from "@/text";
import { connectivity } from "@/text/connectivity";
import { Command, Skeleton } from "@/ui";
import { Section } from "../parts";
import { Warnings } from "../Warnings";
import { type Finding, findingsOf, hasReported } from "./findings";
import { Latencies, Reported } from "./Reported";
import { VisiblePeers } from "./VisiblePeers";

const t = connectivity;

/** Why a device is slow, relayed or unreachable: what it reports, and which peers it sees. */
export default function Connectivity({ node }: { node: Node }) {
  const host = node.host;
  const may = useCan()("policy:read");
  if (!host)
    return (
      <div role="status" aria-label={text.node.loadingFacts} className="space-y-3 py-1">
        <Skeleton className="w-40" />
        <Skeleton className="w-56" />
      </div>
    );
  return (
    <div className="@container space-y-4">
      <div className="-mb-4 empty:hidden">
        <Warnings node={node} />
      </div>
      <Section title={t.findings.title} note={t.findings.note}>
        <ul className="space-y-2 text-13">
          {findingsOf(node, host).map((finding) => (
            <FindingLine key={finding.kind} finding={finding} />
          ))}
        </ul>
      </Section>
      {hasReported(host) && (
        <div className="grid grid-cols-1 items-start gap-4 @min-[760px]:grid-cols-2">
          <Reported host={host} />
          <Latencies host={host} />
        </div>
      )}
      <Unknowable />
      {may ? <VisiblePeers node={node} host={host} /> : <p className="text-13 text-ink-2">{t.peers.notAllowed}</p>}
    </div>
  );
}

const looks = {
  bad: { Icon: CircleAlert, look: "text-bad" },
  warn: { Icon: TriangleAlert, look: "text-warn" },
  info: { Icon: Info, look: "text-ink-3" },
  ok: { Icon: CircleCheck, look: "text-ok" },
};

function FindingLine({ finding: { kind, level, milliseconds } }: { finding: Finding }) {
  const { Icon, look } = looks[level];
  const words = kind === "farRelay" ? t.findings.farRelay(text.node.milliseconds(milliseconds ?? 0)) : t.findings[kind];
  return (
    <li className="flex items-start gap-2.5">
      <Icon className={`mt-0.5 size-4 shrink-0 ${look}`} aria-hidden />
      <span className="min-w-0 max-w-[90ch]">{words}</span>
    </li>
  );
}

/** What devices never report to the server, and the commands that show it on the device. */
function Unknowable() {
  const words = t.unknowable;
  return (
    <Section title={words.title}>
      <p className="mb-3 max-w-[100ch] text-13 text-ink-2">{words.body}</p>
      <div className="grid grid-cols-1 gap-3 @min-[760px]:grid-cols-3">
        {words.commands.map(({ about, command }) => (
          <div key={command} className="space-y-1">
            <p className="text-12 text-ink-2">{about}</p>
            <Command value={command} what={words.command} />
          </div>
        ))}
      </div>
    </Section>
  );
}
