import { clsx } from "clsx";
import { type KeyboardEvent, useState } from "react";
import { text } from "@/text";
import { announce, Tip, usePreferences } from "@/ui";
import { heights } from "./heights";
import { momentWords, tickWords } from "./range";

const t = text.timeline;

/** The axis with the marker. Arrow keys move the marker; with Shift they select a period, and Enter shows it. */
export function Axis({
  from,
  to,
  grid,
  x,
  marker,
  onMarker,
  onPeriod,
}: {
  from: number;
  to: number;
  grid: { at: number; day: boolean }[];
  x(at: number): number;
  marker: number | null;
  onMarker(at: number | null): void;
  onPeriod(from: number, to: number): void;
}) {
  const { timeZone } = usePreferences();
  const [anchor, setAnchor] = useState<number | null>(null);
  const words = (at: number) => momentWords(at, timeZone, to - from < 6 * 3600e3);
  const here = marker !== null && marker >= from && marker <= to ? marker : to;
  const key = (event: KeyboardEvent) => {
    const unit = (to - from) / 100;
    const move = { ArrowLeft: -unit, ArrowRight: unit, PageDown: -10 * unit, PageUp: 10 * unit }[event.key];
    const next = event.key === "Home" ? from : event.key === "End" ? to : move !== undefined ? here + move : undefined;
    if (next !== undefined) {
      event.preventDefault();
      const at = Math.min(Math.max(next, from), to);
      const begin = event.shiftKey ? (anchor ?? here) : null;
      setAnchor(begin);
      onMarker(at);
      if (begin !== null) announce(t.chosen(words(Math.min(begin, at)), words(Math.max(begin, at))));
    } else if (event.key === "Enter" && anchor !== null) {
      event.preventDefault();
      onPeriod(anchor, here);
      setAnchor(null);
    } else if (event.key === "Escape" && (anchor !== null || marker !== null)) {
      event.preventDefault();
      event.stopPropagation();
      if (anchor !== null) setAnchor(null);
      else onMarker(null);
    }
  };
  return (
    <>
      {anchor !== null && (
        <div
          className="pointer-events-none absolute inset-y-0 border-x border-accent bg-accent/10"
          style={{ left: Math.min(x(anchor), x(here)), width: Math.abs(x(anchor) - x(here)) }}
        />
      )}
      <Tip label={t.axisHint}>
        <div
          role="slider"
          tabIndex={0}
          aria-label={t.axis}
          aria-valuemin={Math.round(from / 1000)}
          aria-valuemax={Math.round(to / 1000)}
          aria-valuenow={Math.round(here / 1000)}
          aria-valuetext={words(here)}
          onKeyDown={key}
          onBlur={() => setAnchor(null)}
          className="pointer-events-none absolute inset-x-0 top-0 -outline-offset-2 focus-visible:pointer-events-auto"
          style={{ height: heights.axis }}
        >
          {grid.map((tick) => (
            <span
              key={tick.at}
              className={clsx(
                "absolute top-1.5 -translate-x-1/2 text-11 whitespace-nowrap tabular-nums",
                tick.day ? "font-semibold text-ink-2" : "text-ink-3",
              )}
              style={{ left: x(tick.at) }}
            >
              {tickWords(tick, timeZone)}
            </span>
          ))}
        </div>
      </Tip>
    </>
  );
}
