import { type EventWords, eventWords, type KeyComments, type Lane, lanes } from "@/activity";
import type { Change } from "@/api";
import type { Fields } from "@/filter";

export interface Told {
  entry: Change;
  words: EventWords;
  at: number;
}

export const tell = (entry: Change): Told => ({ entry, words: eventWords(entry), at: Date.parse(entry.at) });

/** What filter terms mean for events: any name that a row or its details show. */
export const eventFilter = (commentOf: KeyComments): Fields<Told> => {
  const names = ({ entry, words }: Told) => [words.actor, commentOf(entry)];
  const includes = (all: readonly string[], word: string) => all.some((each) => each.toLowerCase().includes(word));
  return {
    text: (told, word) =>
      includes([told.words.title, ...names(told), told.entry.actor.address, told.entry.actor.requestId], word),
    fields: { by: (told, value) => includes(names(told), value) },
  };
};
export const eventFilterFields = ["by"];

/** The kinds of objects in each lane. Routes belong to nodes. */
const kinds: Record<Lane, string> = {
  nodes: "node",
  routes: "node",
  keys: "preauthkey,apikey",
  users: "user",
  policy: "policy",
  server: "dns,webhook",
  signins: "login,sshgrant",
};

/** The lanes named in the URL; all if it names none. */
export function lanesOf(word: string): readonly Lane[] {
  const named = word.split(",");
  const found = lanes.filter((lane) => named.includes(lane));
  return found.length > 0 ? found : lanes;
}

/** The kinds to request, so that the server need not send the rest; undefined for all. */
export function kindsOf(shown: readonly Lane[]): string | undefined {
  if (shown.length === lanes.length) return undefined;
  return [...new Set(shown.map((lane) => kinds[lane]))].join(",");
}

/** Events of a lane that are too close to be drawn separately. */
export interface EventMark {
  id: string;
  lane: Lane | "all";
  x: number;
  /** Newest first. */
  told: Told[];
}

/** The minimum distance for touch targets. */
export const cell = 24;

/**
 * The marks of a lane: single events where they fit, one mark for events that would overlap. Events are newest first; x
 * returns their position; "all" is one lane for everything. Marks are sorted from left to right and never closer than a
 * cell.
 */
export function marksOf(told: readonly Told[], lane: EventMark["lane"], x: (at: number) => number): EventMark[] {
  const marks: (EventMark & { right: number })[] = [];
  for (const each of told) {
    if (lane !== "all" && each.words.lane !== lane) continue;
    const place = x(each.at);
    const last = marks.at(-1);
    if (last && last.x - place < cell) {
      last.told.push(each);
      last.x = (last.right + place) / 2;
    } else marks.push({ id: each.entry.id, lane, x: place, right: place, told: [each] });
  }
  return marks.reverse();
}

/** The mark that gets the focus after a key: along its lane, or the nearest in the next lane that has any. */
export function moved(marks: readonly EventMark[], from: EventMark, key: string): EventMark | undefined {
  const own = marks.filter((mark) => mark.lane === from.lane);
  const at = own.indexOf(from);
  switch (key) {
    case "ArrowRight":
      return own[at + 1];
    case "ArrowLeft":
      return own[at - 1];
    case "Home":
      return own[0];
    case "End":
      return own.at(-1);
    case "ArrowUp":
    case "ArrowDown": {
      const filled = lanes.filter((lane) => marks.some((mark) => mark.lane === lane));
      const lane = filled[filled.indexOf(from.lane as Lane) + (key === "ArrowDown" ? 1 : -1)];
      const others = marks.filter((mark) => mark.lane === lane);
      return others.sort((a, b) => Math.abs(a.x - from.x) - Math.abs(b.x - from.x))[0];
    }
    default:
      return undefined;
  }
}

const radius = { one: 4, most: 11 };

/** The radius of a group grows with its number of events, up to what fits next to its neighbours. */
export const radiusOf = (count: number) => (count === 1 ? radius.one : Math.min(radius.most, 7 + Math.log2(count)));

/** The number of events, short enough for a mark. */
export const countWords = (count: number) => (count > 99 ? "99+" : String(count));
