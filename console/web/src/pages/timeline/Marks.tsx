import { type KeyboardEvent, memo, useRef, useState } from "react";
import { text } from "@/text";
import { Tip, usePreferences } from "@/ui";
import { heights } from "./heights";
import { cell, countWords, type EventMark, moved, radiusOf } from "./marks";
import { momentWords } from "./range";

const t = text.timeline;

/** The events in their lanes. They are a single Tab stop; arrow keys move between them. */
export const Marks = memo(function Marks({
  marks,
  lanes,
  width,
  height,
  from,
  to,
  onMark,
}: {
  marks: readonly EventMark[];
  lanes: readonly EventMark["lane"][];
  width: number;
  height: number;
  from: number;
  to: number;
  onMark(mark: EventMark): void;
}) {
  const svg = useRef<SVGSVGElement>(null);
  const [current, setCurrent] = useState("");
  const stop = marks.find((mark) => mark.id === current) ?? marks.at(-1);
  const { timeZone } = usePreferences();
  const seconds = to - from < 6 * 3600e3;
  const key = (event: KeyboardEvent, mark: EventMark) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      onMark(mark);
      return;
    }
    const next = moved(marks, mark, event.key);
    if (!next) return;
    event.preventDefault();
    setCurrent(next.id);
    svg.current?.querySelector<SVGGElement>(`[data-event-mark="${next.id}"]`)?.focus();
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a drawing holds no fieldset
    <svg
      ref={svg}
      width={width}
      height={height}
      role="group"
      aria-label={t.marks}
      className="absolute inset-0 overflow-visible"
    >
      {marks.map((mark) => {
        const [first] = mark.told;
        if (!first) return null;
        const count = mark.told.length;
        const last = mark.told.at(-1) ?? first;
        const y = heights.axis + lanes.indexOf(mark.lane) * heights.lane + heights.lane / 2;
        const when = (at: number) => momentWords(at, timeZone, seconds);
        const name =
          count === 1
            ? `${first.words.title}, ${when(first.at)}`
            : t.markMany(countWords(count), t.eventsOf(count), when(last.at), when(first.at));
        return (
          <Tip key={mark.id} label={<MarkWords mark={mark} when={when} />}>
            {/* biome-ignore lint/a11y/useSemanticElements: a drawing holds no button */}
            <g
              role="button"
              tabIndex={mark === stop ? 0 : -1}
              aria-label={name}
              data-event-mark={mark.id}
              className="cursor-pointer fill-control stroke-control hover:fill-accent hover:stroke-accent"
              onClick={() => {
                setCurrent(mark.id);
                onMark(mark);
              }}
              onKeyDown={(event) => key(event, mark)}
            >
              <rect
                x={mark.x - cell / 2}
                y={y - cell / 2}
                width={cell}
                height={cell}
                fill="transparent"
                stroke="none"
              />
              <Shape mark={mark} x={mark.x} y={y} />
            </g>
          </Tip>
        );
      })}
    </svg>
  );
});

/** A single event is a disc, or a ring if something ended; several events are a larger disc with their number. */
function Shape({ mark, x, y }: { mark: EventMark; x: number; y: number }) {
  const count = mark.told.length;
  const ended = mark.told.every((each) => each.words.ended);
  const r = radiusOf(count);
  if (count === 1)
    return ended ? (
      <circle cx={x} cy={y} r={r - 0.75} strokeWidth={1.75} className="fill-surface" />
    ) : (
      <circle cx={x} cy={y} r={r} stroke="none" />
    );
  return (
    <>
      <circle cx={x} cy={y} r={r} strokeWidth={1} className="fill-chip stroke-control" />
      <text x={x} y={y + 3.5} textAnchor="middle" fontSize={10} fontWeight={600} stroke="none" className="fill-ink">
        {countWords(count)}
      </text>
    </>
  );
}

function MarkWords({ mark, when }: { mark: EventMark; when(at: number): string }) {
  const most = 5;
  return (
    <span className="block space-y-0.5">
      {mark.told.slice(0, most).map(({ entry, words, at }) => (
        <span key={entry.id} className="block">
          <span className="tabular-nums opacity-75">{when(at)}</span> {words.title}
          {mark.told.length === 1 && <span className="opacity-75"> {text.activity.by(words.actor)}</span>}
        </span>
      ))}
      {mark.told.length > most && (
        <span className="block opacity-75">{text.nodes.many.more(mark.told.length - most)}</span>
      )}
    </span>
  );
}
