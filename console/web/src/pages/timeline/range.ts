import type { Preferences } from "@/ui";

const hour = 3600e3;
const day = 24 * hour;

export const lengths = { "1h": hour, "24h": day, "7d": 7 * day, "30d": 30 * day };
export type RangeName = keyof typeof lengths;
export const rangeNames = Object.keys(lengths) as RangeName[];

/** The longest period that the server accepts. */
export const longest = 31 * day;
export const shortest = 60e3;

/** The period that a page shows. Without an end it follows the current time. */
export interface Period {
  from: number;
  to: number | null;
}

const moment = (word: string) => {
  const at = Date.parse(word);
  // Years have four digits: later times cannot be written in every time zone.
  return at >= 0 && at < 253_402_300_800_000 ? at : null;
};

/** The period in the URL: two times, a time until now, or one of the ranges until now. */
export function periodOf(search: { range: string; from: string; to: string }, now: number): Period {
  const from = moment(search.from);
  const to = moment(search.to);
  if (from !== null && to !== null && to > from) return { from: Math.max(from, to - longest), to };
  if (from !== null && from < now && !search.to) return { from: Math.max(from, now - longest), to: null };
  const name = rangeNames.find((each) => each === search.range) ?? "24h";
  return { from: now - lengths[name], to: null };
}

/** A period moved by half its length; null if it would reach now, because the page then follows the current time. */
export function shifted(from: number, to: number, direction: 1 | -1, now: number): Period | null {
  const step = ((to - from) / 2) * direction;
  return to + step >= now - shortest ? null : { from: from + step, to: to + step };
}

/** A period around some times, with a margin on both sides and a minimum length. */
export function around(first: number, last: number, now: number): Period {
  const room = Math.max((last - first) * 0.15, shortest);
  return { from: first - room, to: Math.min(last + room, Math.max(now, last + 1)) };
}

type Zone = Preferences["timeZone"];
const offsetOf = (at: number, zone: Zone) => (zone === "utc" ? 0 : -new Date(at).getTimezoneOffset() * 60e3);

/** A time as the value of a datetime-local input. */
export const fieldValue = (at: number, zone: Zone) => new Date(at + offsetOf(at, zone)).toISOString().slice(0, 16);

export function fieldMoment(value: string, zone: Zone): number | null {
  if (!value) return null;
  return moment(zone === "utc" ? `${value}Z` : value);
}

const steps = [
  60e3,
  2 * 60e3,
  5 * 60e3,
  10 * 60e3,
  15 * 60e3,
  30 * 60e3,
  hour,
  2 * hour,
  3 * hour,
  6 * hour,
  12 * hour,
  day,
  2 * day,
  5 * day,
  7 * day,
];

/** Round times with enough space between them, and whether each starts a day. */
export function ticks(from: number, to: number, width: number, zone: Zone, room = 88): { at: number; day: boolean }[] {
  const least = ((to - from) / Math.max(1, width)) * room;
  const step = steps.find((each) => each >= least) ?? 14 * day;
  const all: { at: number; day: boolean }[] = [];
  // Days start in the displayed time zone, whose offset may change between two ticks.
  for (let local = Math.ceil((from + offsetOf(from, zone)) / step) * step; ; local += step) {
    const at = local - offsetOf(local - offsetOf(local, zone), zone);
    if (at > to) return all;
    if (at >= from) all.push({ at, day: local % day === 0 });
  }
}

/** "14:00", or "12 Nov" at the start of a day. */
export function tickWords({ at, day: begins }: { at: number; day: boolean }, zone: Zone): string {
  const timeZone = zone === "utc" ? "UTC" : undefined;
  const format: Intl.DateTimeFormatOptions = begins
    ? { day: "numeric", month: "short", timeZone }
    : { hour: "2-digit", minute: "2-digit", timeZone };
  return new Intl.DateTimeFormat("en-GB", format).format(at);
}

/** "14 Nov, 18:50", with seconds if the period is short. */
export function momentWords(at: number, zone: Zone, seconds = false): string {
  return new Intl.DateTimeFormat("en-GB", {
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
    second: seconds ? "2-digit" : undefined,
    timeZone: zone === "utc" ? "UTC" : undefined,
  }).format(at);
}
