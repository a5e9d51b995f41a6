import { useQuery } from "@tanstack/react-query";
import { useMemo, useRef } from "react";
import { nodePresenceQuery, useCan } from "@/api";
import { text } from "@/text";
import { absolute, ErrorState, FoldButton, Skeleton, useFold, useNow, usePreferences } from "@/ui";
import { useWidth } from "@/ui/useWidth";
import { lengthWords, percentWords, type Span, shareOnline, spansOf } from "./presence";

const t = text.activity.presence;

/**
 * When a node was online between two times, in milliseconds. Without `to` it ends now and is live. With `server`,
 * offline times are outages. The table below says the same in words.
 */
export function PresenceBand({
  nodeId,
  from,
  to,
  server = true,
}: {
  nodeId: string;
  from: number;
  to?: number;
  server?: boolean;
}) {
  const now = useNow();
  const end = to ?? now;
  const spans = useSpans(nodeId, from, to, end);
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  if (spans.error) return <ErrorState title={t.failed} error={spans.error} />;
  return (
    <div ref={box}>
      {spans.data ? (
        <>
          <Strip spans={spans.data} from={from} to={end} width={width} server={server} height={20} />
          <Axis from={from} to={end} />
          <SpanTable spans={spans.data} live={to === undefined} />
        </>
      ) : (
        <Skeleton className="my-2 h-1" />
      )}
    </div>
  );
}

/**
 * The start of a range is rounded to this, so that it does not cause constant refetches as it moves with the current
 * time.
 */
const step = 5 * 60_000;

/** The spans of a node. The end may move with the current time without a refetch. */
export function useSpans(nodeId: string, from: number, to: number | undefined, end: number) {
  const enabled = useCan()("history:read");
  const period = [
    new Date(Math.floor(from / step) * step).toISOString(),
    to === undefined ? undefined : new Date(to).toISOString(),
  ] as const;
  const { data, error } = useQuery({ ...nodePresenceQuery(nodeId, ...period), enabled });
  const spans = useMemo(() => data && spansOf(data, from, Math.max(end, from)), [data, from, end]);
  return { data: spans, error: data ? null : error };
}

/** A bar while the node was online, a thin line while it was not, and red notches for a server's outages. */
export function Strip({
  spans,
  from,
  to,
  width,
  height,
  server,
}: {
  spans: readonly Span[];
  from: number;
  to: number;
  width: number;
  height: number;
  server: boolean;
}) {
  const share = shareOnline(spans);
  const middle = height / 2;
  const x = (at: number) => ((at - from) / Math.max(1, to - from)) * width;
  const begin = spans[0] ? x(spans[0].from) : width;
  return (
    <svg
      width={width}
      height={height}
      className="block"
      role="img"
      aria-label={share ? t.label(percentWords(share)) : t.never}
    >
      <rect x={begin} y={middle - 0.5} width={Math.max(0, width - begin)} height={1} fill="var(--line-strong)" />
      {spans
        .filter((span) => span.online)
        .map((span) => (
          <rect
            key={span.from}
            x={x(span.from)}
            y={middle - 2}
            width={Math.max(1, x(span.to) - x(span.from))}
            height={4}
            fill="var(--up)"
          />
        ))}
      {server &&
        spans
          .filter((span) => span.gap)
          .map((span) => (
            <rect
              key={span.from}
              x={x(span.from)}
              y={middle - 6}
              width={Math.max(2, x(span.to) - x(span.from))}
              height={12}
              rx={1}
              fill="var(--gap)"
            />
          ))}
    </svg>
  );
}

function Axis({ from, to }: { from: number; to: number }) {
  const { timeZone } = usePreferences();
  const short = (at: number) => absolute(new Date(at).toISOString(), timeZone).replace(/ \(.*\)/, "");
  return (
    <div className="flex justify-between pt-1 text-11 text-ink-3 tabular-nums" aria-hidden>
      <span>{short(from)}</span>
      <span>{short(to)}</span>
    </div>
  );
}

/** The same in words, newest first. */
function SpanTable({ spans, live }: { spans: readonly Span[]; live: boolean }) {
  const fold = useFold();
  const { timeZone } = usePreferences();
  const rows = [...spans].reverse().slice(0, 200);
  const moment = (at: number) => absolute(new Date(at).toISOString(), timeZone).replace(/ \(.*\)/, "");
  return (
    <div className="pt-1">
      <FoldButton fold={fold} small className="-ml-0.5 h-6 text-12">
        {t.asTable}
      </FoldButton>
      {fold.open && (
        <table id={fold.id} className="mt-1 w-full text-12 tabular-nums">
          <thead>
            <tr className="border-b border-line text-left text-ink-2">
              {[t.state, t.from, t.to, t.length].map((title) => (
                <th key={title} scope="col" className="h-7 pr-4 font-medium">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((span, i) => (
              <tr key={span.from} className="border-b border-hair">
                <td className="h-7 pr-4">{span.online ? t.online : t.offline}</td>
                <td className="pr-4">{moment(span.from)}</td>
                <td className="pr-4">{i === 0 && live ? t.still : moment(span.to)}</td>
                <td>{lengthWords(span.to - span.from)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}
