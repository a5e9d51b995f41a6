import { lengthWords, percentWords, shareOnline, useSpans } from "@/activity";
import type { Node } from "@/api";
import { isServer } from "@/nodes";
import { printable, text } from "@/text";

const t = text.timeline;

/** The strips as numbers. */
export function PresenceTable({
  nodes,
  from,
  to,
  live,
}: {
  nodes: readonly Node[];
  from: number;
  to: number;
  live: boolean;
}) {
  return (
    <table className="w-full text-12 tabular-nums">
      <caption className="sr-only">{t.presenceTable}</caption>
      <thead>
        <tr className="h-8 border-b border-line text-left text-ink-2">
          {[t.columns.node, t.columns.share, t.columns.away, t.columns.longest].map((title) => (
            <th key={title} scope="col" className="pr-4 font-medium first:w-[40%]">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {nodes.map((node) => (
          <Figures key={node.id} node={node} from={from} to={to} live={live} />
        ))}
      </tbody>
    </table>
  );
}

function Figures({ node, from, to, live }: { node: Node; from: number; to: number; live: boolean }) {
  const { data } = useSpans(node.id, from, live ? undefined : to, to);
  const share = data ? shareOnline(data) : null;
  const gaps = data?.filter((span) => span.gap) ?? [];
  const longest = Math.max(0, ...gaps.map((span) => span.to - span.from));
  return (
    <tr className="h-8 border-b border-hair">
      <th scope="row" className="pr-4 text-left font-normal">
        {printable(node.givenName)}
      </th>
      <td className="pr-4">{share === null ? "" : percentWords(share)}</td>
      <td className="pr-4">{isServer(node) ? gaps.length : ""}</td>
      <td>{isServer(node) && longest > 0 ? lengthWords(longest) : ""}</td>
    </tr>
  );
}
