import { clsx } from "clsx";
import { ChevronLeft, ChevronRight } from "lucide-react";
import { useState } from "react";
import { text } from "@/text";
import { Button, Dialog, Field, IconButton, Input, usePreferences } from "@/ui";
import { fieldMoment, fieldValue, longest, momentWords, type Period, type RangeName, rangeNames } from "./range";

const t = text.timeline;

/** Selects the period that everything on the page is about. */
export function RangeBar({
  period,
  end,
  range,
  onRange,
  onPeriod,
  onShift,
}: {
  period: Period;
  /** The end of the period; now if it is open-ended. */
  end: number;
  /** Empty if the period is given by two times. */
  range: RangeName | "";
  onRange(range: RangeName): void;
  onPeriod(period: Period): void;
  onShift(direction: 1 | -1): void;
}) {
  const { timeZone } = usePreferences();
  const [asking, setAsking] = useState(false);
  const shown = `${momentWords(period.from, timeZone)} – ${period.to === null ? t.now : momentWords(end, timeZone)}`;
  return (
    <>
      <fieldset className="flex rounded-md border border-line-strong bg-surface p-0.5">
        <legend className="sr-only">{t.range}</legend>
        {rangeNames.map((name) => (
          <button
            key={name}
            type="button"
            aria-pressed={range === name}
            onClick={() => onRange(name)}
            className={clsx(
              "h-6.5 rounded px-2.5 text-13 font-medium whitespace-nowrap",
              range === name ? "bg-accent-soft text-accent-ink" : "text-ink-2 hover:bg-sunken hover:text-ink",
            )}
          >
            {t.ranges[name]}
          </button>
        ))}
      </fieldset>
      <div className="flex min-w-0 items-center">
        <IconButton label={t.earlier} icon={ChevronLeft} onClick={() => onShift(-1)} />
        <button
          type="button"
          onClick={() => setAsking(true)}
          aria-label={`${t.custom}: ${shown}`}
          className="h-8 min-w-0 truncate rounded-md px-1.5 text-13 text-ink-2 tabular-nums hover:bg-sunken hover:text-ink"
        >
          {shown}
        </button>
        <IconButton
          label={t.later}
          icon={ChevronRight}
          disabled={period.to === null}
          onClick={() => onShift(1)}
          className="disabled:opacity-40"
        />
      </div>
      {period.to !== null && <Button onClick={() => onRange(range || "24h")}>{t.backToNow}</Button>}
      {asking && (
        <AskPeriod
          period={period}
          onClose={() => setAsking(false)}
          onChoose={(chosen) => {
            setAsking(false);
            onPeriod(chosen);
          }}
        />
      )}
    </>
  );
}

function AskPeriod({ period, onChoose, onClose }: { period: Period; onChoose(period: Period): void; onClose(): void }) {
  const { timeZone } = usePreferences();
  const [from, setFrom] = useState(fieldValue(period.from, timeZone));
  const [to, setTo] = useState(period.to === null ? "" : fieldValue(period.to, timeZone));
  const begin = fieldMoment(from, timeZone);
  const end = fieldMoment(to, timeZone);
  const until = end ?? Date.now();
  const problem = begin === null ? t.needsFrom : until <= begin ? t.badOrder : until - begin > longest ? t.tooLong : "";
  return (
    <Dialog
      title={t.custom}
      onClose={onClose}
      onSubmit={() => !problem && begin !== null && onChoose({ from: begin, to: end })}
      footer={
        <>
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button type="submit" look="primary" disabled={Boolean(problem)}>
            {t.apply}
          </Button>
        </>
      }
    >
      <Field label={t.from} error={problem || undefined}>
        {(control) => (
          <Input {...control} type="datetime-local" value={from} onChange={(e) => setFrom(e.target.value)} autoFocus />
        )}
      </Field>
      <Field label={t.to} hint={t.toHint}>
        {(control) => <Input {...control} type="datetime-local" value={to} onChange={(e) => setTo(e.target.value)} />}
      </Field>
    </Dialog>
  );
}
