import type { Node } from "@/api";
import { identifiers as t } from "@/text/ownership";
import { CopyButton } from "@/ui";
import { Fact, Facts, Section, type SummarySection } from "../parts";

/** The ID of a node and its public keys, for scripts and for comparing with what the device shows. */
export default { column: "right", order: 2, Show: Identifiers } satisfies SummarySection;

function Identifiers({ node }: { node: Node }) {
  return (
    <Section title={t.title} note={t.note}>
      <Facts>
        <Value label={t.id} value={node.id} />
        <Value label={t.nodeKey} value={node.nodeKey} />
        <Value label={t.machineKey} value={node.machineKey} />
        <Value label={t.discoKey} value={node.discoKey} />
      </Facts>
    </Section>
  );
}

const Value = ({ label, value }: { label: string; value: string }) => (
  <Fact label={label}>
    {value ? (
      <span className="flex min-h-5 items-center gap-1 font-mono text-12">
        <span className="min-w-0 truncate">{value}</span>
        <CopyButton value={value} what={label} className="-my-0.5" />
      </span>
    ) : (
      <span className="text-ink-2">{t.none}</span>
    )}
  </Fact>
);
