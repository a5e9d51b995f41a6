import type { Preferences } from "@/ui";

export const units = { hours: 3600e3, days: 864e5, weeks: 7 * 864e5 };
export type Unit = keyof typeof units;

/** The lifetime of a key: one of a page's presets, by its length in hours, or a number of units. */
export interface Life {
  choice: string;
  count: string;
  unit: Unit;
}

/** When a key created now expires; null if the typed length is invalid. */
export function endOf(life: Life, now: number): number | null {
  if (life.choice !== "custom") return now + Number(life.choice) * units.hours;
  if (!/^\d{1,5}$/.test(life.count.trim())) return null;
  const length = Number(life.count) * units[life.unit];
  return length > 0 ? now + length : null;
}

/** "Sat 21 Nov 22:40", with the year if it is not the current one. */
export function momentWords(at: number, now: number, zone: Preferences["timeZone"]): string {
  const timeZone = zone === "utc" ? "UTC" : undefined;
  const year = (ms: number) => new Intl.DateTimeFormat("en-GB", { year: "numeric", timeZone }).format(ms);
  const words = new Intl.DateTimeFormat("en-GB", {
    weekday: "short",
    day: "numeric",
    month: "short",
    year: year(at) === year(now) ? undefined : "numeric",
    hour: "2-digit",
    minute: "2-digit",
    timeZone,
  }).format(at);
  return words.replaceAll(",", "") + (zone === "utc" ? " UTC" : "");
}

/** A time in the format of a datetime-local input. */
export function localTime(at: number, zone: Preferences["timeZone"]): string {
  const offset = zone === "utc" ? 0 : new Date(at).getTimezoneOffset() * 60e3;
  return new Date(at - offset).toISOString().slice(0, 16);
}

/** The time in a datetime-local input; null if it is incomplete. */
export function momentOf(typed: string, zone: Preferences["timeZone"]): number | null {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(typed)) return null;
  const at = Date.parse(zone === "utc" ? `${typed}Z` : typed);
  return Number.isNaN(at) ? null : at;
}
