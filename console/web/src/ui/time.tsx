import { useSyncExternalStore } from "react";
import { text } from "@/text";
import { type Preferences, usePreferences } from "./preferences";
import { Tip } from "./tip";

const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(tell: () => void) {
  listeners.add(tell);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, 60_000);
  return () => {
    listeners.delete(tell);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** The current time to the minute. All components that show it update together. */
export const useNow = () => useSyncExternalStore(subscribe, () => now);

const steps: [number, number, string][] = [
  [45e3, 0, ""],
  [3600e3, 60e3, "m"],
  [864e5, 3600e3, "h"],
  [60 * 864e5, 864e5, "d"],
  [730 * 864e5, 30 * 864e5, "mo"],
  [Number.POSITIVE_INFINITY, 365 * 864e5, "y"],
];

/** "5m ago", "in 2mo", "just now". */
export function relative(at: string, from: number): string {
  const distance = Date.parse(at) - from;
  const length = Math.abs(distance);
  const [, unit, name] = steps.find(([below]) => length < below) ?? [0, 0, ""];
  if (!unit) return text.common.justNow;
  const count = Math.max(1, Math.round(length / unit));
  return distance < 0 ? `${count}${name} ago` : `in ${count}${name}`;
}

/** The full date and time, in the person's chosen time zone and in UTC. */
export function absolute(at: string, zone: Preferences["timeZone"]): string {
  const moment = new Date(at);
  const utc = `${moment.toISOString().slice(0, 16).replace("T", " ")} UTC`;
  if (zone === "utc") return utc;
  const local = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" }).format(moment);
  return `${local} (${utc})`;
}

/** The date and time to the second, in the person's chosen time zone, for places that have no room for UTC too. */
export function dateTime(at: string, zone: Preferences["timeZone"]): string {
  const moment = new Date(at);
  if (zone === "utc") return `${moment.toISOString().slice(0, 19).replace("T", " ")} UTC`;
  return new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" }).format(moment);
}

/** Hours and minutes of a time today. */
export function clock(at: number, zone: Preferences["timeZone"]): string {
  const timeZone = zone === "utc" ? "UTC" : undefined;
  return new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone }).format(at);
}

/** A relative time; the full one on hover and focus. */
export function Time({
  at,
  format = (words) => words,
  focusable = true,
  className,
}: {
  at: string;
  format?(words: string): string;
  focusable?: boolean;
  className?: string;
}) {
  const from = useNow();
  const { timeZone } = usePreferences();
  const full = absolute(at, timeZone);
  return (
    <Tip label={full}>
      <time dateTime={at} tabIndex={focusable ? 0 : undefined} className={className}>
        {format(relative(at, from))}
      </time>
    </Tip>
  );
}
