/** A period in which a node was online or offline, in milliseconds. */
export interface Span {
  from: number;
  to: number;
  online: boolean;
  /**
   * Whether the node was offline after it had been online: an outage for a server, but just a closed lid for a laptop.
   */
  gap: boolean;
}

interface Told {
  from: string;
  onlineBefore: boolean;
  transitions: readonly { at: string; online: boolean }[];
}

/** The online and offline spans of a node within a period. There are none before it joined. */
export function spansOf(told: Told, from: number, to: number): Span[] {
  const spans: Span[] = [];
  let at = Date.parse(told.from);
  let online = told.onlineBefore;
  let seen = online;
  const add = (until: number, last: boolean) => {
    const span = { from: Math.max(at, from), to: Math.min(until, to), online, gap: !online && seen };
    if (span.to > span.from || (last && span.to === span.from && spans.length === 0)) spans.push(span);
  };
  for (const change of told.transitions) {
    const moment = Date.parse(change.at);
    if (change.online !== online) add(moment, false);
    else continue;
    at = moment;
    online = change.online;
    seen ||= online;
  }
  add(to, true);
  return spans;
}

/** The fraction of the known time for which a node was online, from 0 to 1; null if nothing is known. */
export function shareOnline(spans: readonly Span[]): number | null {
  const length = (list: readonly Span[]) => list.reduce((sum, span) => sum + span.to - span.from, 0);
  const all = length(spans);
  return all > 0 ? length(spans.filter((span) => span.online)) / all : null;
}

/** "99.9 %"; never 100 % if the node was offline at any time. */
export function percentWords(share: number): string {
  const percent = share === 1 ? 100 : Math.min(99.9, Math.floor(share * 1000) / 10);
  return `${percent.toLocaleString("en")} %`;
}

/** "45 s", "12 min", "3 h 20 min", "2 d 4 h". */
export function lengthWords(length: number): string {
  const seconds = Math.round(length / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  const days = Math.floor(hours / 24);
  return hours % 24 ? `${days} d ${hours % 24} h` : `${days} d`;
}
