import type { Node } from "@/api";
import type { SummarySection } from "./parts";
import { Warnings } from "./Warnings";

/** The sections from all files in ./sections, in order. */
const sections = Object.values(
  import.meta.glob<SummarySection>("./sections/*.tsx", { eager: true, import: "default" }),
).sort((a, b) => a.order - b.order);

/** The identity of a node, its device, and what it reports about its network. */
export function Summary({ node, deleted }: { node: Node; deleted: boolean }) {
  const column = (name: SummarySection["column"]) => (
    <div className="space-y-4">
      {sections
        .filter((section) => section.column === name)
        .map(({ order, Show }) => (
          <Show key={order} node={node} deleted={deleted} />
        ))}
    </div>
  );
  return (
    <div className="@container">
      <Warnings node={node} />
      <div className="grid grid-cols-1 items-start gap-4 @min-[760px]:grid-cols-2">
        {column("left")}
        {column("right")}
      </div>
    </div>
  );
}
