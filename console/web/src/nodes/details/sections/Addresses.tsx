import type { Node } from "@/api";
import { addresses as t } from "@/text/ownership";
import { CopyButton, useWrites } from "@/ui";
import { useNodeActions } from "../../actions";
import { Fact, Facts, Section, SmallButton, type SummarySection } from "../parts";

/** The addresses of a node in the network, which administrators can change. */
export default { column: "left", order: 2, Show: Addresses } satisfies SummarySection;

function Addresses({ node, deleted }: { node: Node; deleted: boolean }) {
  const start = useNodeActions();
  const { offered, why } = useWrites("nodes:write");
  return (
    <Section
      title={t.title}
      action={
        offered &&
        !deleted && (
          <SmallButton why={why} onClick={() => start({ name: "addresses", node })}>
            {t.change}
          </SmallButton>
        )
      }
    >
      <Facts>
        {node.ipAddresses.map((address) => (
          <Fact key={address} label={address.includes(":") ? t.ipv6 : t.ipv4}>
            <span className="flex min-h-5 items-center gap-1 font-mono text-12">
              <span className="min-w-0 truncate">{address}</span>
              <CopyButton value={address} what={address} className="-my-0.5" />
            </span>
          </Fact>
        ))}
      </Facts>
    </Section>
  );
}
