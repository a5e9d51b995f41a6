import type { Node } from "@/api";
import { printable, text } from "@/text";
import { shortVersion, systemName } from "../../facts";
import { Fact, Facts, Section, type SummarySection } from "../parts";

const t = text.node;

/** The device and system that a node runs on. */
export default { column: "left", order: 3, Show: Device } satisfies SummarySection;

function Device({ node }: { node: Node }) {
  const host = node.host;
  const distro = [host?.distro, host?.distroVersion].filter(Boolean).join(" ");
  const system = [systemName(node.os), host?.osVersion].filter(Boolean).join(" ");
  return (
    <Section title={t.device}>
      <Facts>
        <Fact label={t.hostname}>{printable(node.hostname)}</Fact>
        <Fact label={t.system}>
          {printable(distro || system || t.unknown)}
          <span className="block text-12 text-ink-2">
            {printable([distro && system, node.arch].filter(Boolean).join(" · "))}
          </span>
        </Fact>
        {host?.deviceModel && <Fact label={t.model}>{printable(host.deviceModel)}</Fact>}
        <Fact label={t.client}>
          <span className="font-mono text-12">{printable(shortVersion(node.clientVersion)) || t.unknown}</span>
        </Fact>
      </Facts>
    </Section>
  );
}
