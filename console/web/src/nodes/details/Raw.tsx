import type { Node } from "@/api";
import { text } from "@/text";
import { CopyButton } from "@/ui";

const t = text.node.raw;

/** The node as JSON, as a script would read it. */
export function Raw({ node }: { node: Node }) {
  const json = JSON.stringify(node, null, 2);
  return (
    <div className="rounded-lg border border-line bg-surface">
      <div className="flex items-center gap-2 border-b border-line py-1.5 pr-2 pl-4 text-12 text-ink-2">
        <span className="min-w-0 flex-1">{t.note}</span>
        <CopyButton value={json} what={t.what} />
      </div>
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard
        tabIndex={0}
        className="overflow-x-auto px-4 py-3 font-mono text-12 leading-5 -outline-offset-2"
      >
        {json}
      </pre>
    </div>
  );
}
