import { TriangleAlert } from "lucide-react";
import type { Node } from "@/api";
import { printable, text } from "@/text";
import { Time } from "@/ui";
import type { SummarySection } from "./parts";

const t = text.node;

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

function Warnings({ node }: { node: Node }) {
  const messages = node.host?.health ?? [];
  if (messages.length === 0) return null;
  return (
    <section aria-label={t.health} className="mb-4 rounded-lg bg-warn-soft p-4 text-warn">
      <h2 className="flex items-center gap-2 font-semibold">
        <TriangleAlert className="size-4" aria-hidden /> {t.health}
      </h2>
      <ul className="mt-2 space-y-1">
        {messages.map(({ source, message, since }) => (
          <li key={source + message} className="break-words">
            {printable(message, 600)} <Time at={since} format={t.since} className="text-12" />
          </li>
        ))}
      </ul>
    </section>
  );
}
