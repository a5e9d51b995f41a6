import { clsx } from "clsx";
import { Fragment, useRef } from "react";
import { laneIcons } from "@/activity";
import { text } from "@/text";
import { absolute, ColumnHead, Tip, usePreferences } from "@/ui";
import { useWidth } from "@/ui/useWidth";
import type { Told } from "./marks";

const t = text.timeline;

interface TableProps {
  told: readonly Told[];
  open: string;
  onOpen(entry: Told): void;
}

const roomForColumns = 768;

/** The events in words, newest first, with a heading for each day. */
export function EventTable(props: TableProps) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  return (
    <div ref={box}>
      {width > 0 && (width < roomForColumns ? <EventRows {...props} /> : <EventColumns {...props} />)}
    </div>
  );
}

function useDays(told: readonly Told[]) {
  const { timeZone } = usePreferences();
  const zone = timeZone === "utc" ? "UTC" : undefined;
  const dayFormat = new Intl.DateTimeFormat("en-GB", {
    weekday: "long",
    day: "numeric",
    month: "long",
    timeZone: zone,
  });
  const clockFormat = new Intl.DateTimeFormat("en-GB", {
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    timeZone: zone,
  });
  const days: { day: string; told: Told[] }[] = [];
  for (const each of told) {
    const day = dayFormat.format(each.at);
    const last = days.at(-1);
    if (last?.day === day) last.told.push(each);
    else days.push({ day, told: [each] });
  }
  return { days, clock: (at: number) => clockFormat.format(at), full: (at: string) => absolute(at, timeZone) };
}

const OpenButton = ({ each, onOpen, className }: { each: Told; onOpen(entry: Told): void; className?: string }) => (
  <button
    type="button"
    data-event={each.entry.id}
    aria-haspopup="dialog"
    onClick={() => onOpen(each)}
    className={clsx("static min-w-0 text-left break-words after:absolute after:inset-0", className)}
  >
    {each.words.title}
  </button>
);

function EventColumns({ told, open, onOpen }: TableProps) {
  const { days, clock, full } = useDays(told);
  return (
    <table className="w-full table-fixed text-13">
      <thead>
        <tr className="h-9 border-b border-line bg-surface text-left text-12 text-ink-2">
          <ColumnHead className="w-[172px] pl-6">{t.columns.time}</ColumnHead>
          <ColumnHead>{t.columns.event}</ColumnHead>
          <ColumnHead className="w-44">{t.columns.actor}</ColumnHead>
          <ColumnHead className="w-28 pr-6">{t.columns.lane}</ColumnHead>
        </tr>
      </thead>
      {days.map(({ day, told: own }) => (
        <tbody key={day}>
          <tr className="h-8 border-b border-hair bg-canvas">
            <th scope="colgroup" colSpan={4} className="pl-6 text-left text-12 font-semibold">
              {day}
            </th>
          </tr>
          {own.map((each) => {
            const Icon = laneIcons[each.words.lane];
            return (
              <tr
                key={each.entry.id}
                className={clsx(
                  "relative h-9 border-b border-hair hover:bg-sunken/60",
                  each.entry.id === open ? "bg-picked shadow-[inset_2px_0_0_var(--accent)]" : "bg-surface",
                )}
              >
                <td className="pl-6 text-ink-2 tabular-nums">
                  <Tip label={full(each.entry.at)}>
                    <time dateTime={each.entry.at}>{clock(each.at)}</time>
                  </Tip>
                </td>
                <td className="py-1.5 pr-4">
                  <OpenButton each={each} onOpen={onOpen} className={clsx(each.words.ended && "text-ink")} />
                </td>
                <td className="truncate pr-4 text-ink-2">{each.words.actor}</td>
                <td className="pr-6">
                  <span className="flex items-center gap-2 text-12 text-ink-2">
                    <Icon className="size-3.5 text-ink-3" aria-hidden />
                    {text.activity.lanes[each.words.lane]}
                  </span>
                </td>
              </tr>
            );
          })}
        </tbody>
      ))}
    </table>
  );
}

function EventRows({ told, open, onOpen }: TableProps) {
  const { days, clock } = useDays(told);
  return days.map(({ day, told: own }) => (
    <Fragment key={day}>
      <h2 className="border-b border-hair bg-canvas px-6 py-2 max-md:px-4 text-12 font-semibold">{day}</h2>
      <ul>
        {own.map((each) => {
          const Icon = laneIcons[each.words.lane];
          return (
            <li
              key={each.entry.id}
              className={clsx(
                "relative flex gap-3 border-b border-hair px-6 py-2.5 max-md:px-4",
                each.entry.id === open ? "bg-picked" : "bg-surface",
              )}
            >
              <Icon className="mt-0.5 size-4 shrink-0 text-ink-3" aria-hidden />
              <div className="min-w-0 flex-1">
                <OpenButton each={each} onOpen={onOpen} className="text-14" />
                <div className="text-12 text-ink-2 tabular-nums">
                  {clock(each.at)} · {each.words.actor}
                </div>
              </div>
            </li>
          );
        })}
      </ul>
    </Fragment>
  ));
}
