import { TriangleAlert } from "lucide-react";
import type { Node } from "@/api";
import { printable, text } from "@/text";
import { Time } from "@/ui";

const t = text.node;

/** The health warnings that the client of a node reports. */
export function Warnings({ node }: { node: Node }) {
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
