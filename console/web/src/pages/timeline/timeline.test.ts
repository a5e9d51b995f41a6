import { describe, expect, test } from "vitest";
import { lanes } from "@/activity";
import type { Change, Node } from "@/api";
import { matches, parse } from "@/filter";
import { text } from "@/text";
import {
  cell,
  countWords,
  type EventMark,
  eventFilter,
  eventFilterFields,
  kindsOf,
  lanesOf,
  marksOf,
  moved,
  type Told,
  tell,
} from "./marks";
import { around, fieldMoment, fieldValue, periodOf, shifted, ticks, tickWords } from "./range";
import { usualNodes } from "./state";

const now = Date.UTC(2026, 2, 10, 12);
const hour = 3600e3;
const iso = (at: number) => new Date(at).toISOString();

describe("the time that an address asks for", () => {
  const asked = (search: Partial<{ range: string; from: string; to: string }>) =>
    periodOf({ range: "", from: "", to: "", ...search }, now);

  test("is the last day, or one of the ranges, up to now", () => {
    expect(asked({})).toEqual({ from: now - 24 * hour, to: null });
    expect(asked({ range: "7d" })).toEqual({ from: now - 7 * 24 * hour, to: null });
    expect(asked({ range: "7 years" })).toEqual({ from: now - 24 * hour, to: null });
  });

  test("is between two moments, or from one on", () => {
    const [from, to] = [now - 5 * hour, now - 2 * hour];
    expect(asked({ from: iso(from), to: iso(to) })).toEqual({ from, to });
    expect(asked({ from: iso(from) })).toEqual({ from, to: null });
  });

  test("is within years that every zone can write", () => {
    expect(asked({ from: "+275760-09-12T00:00:00Z", to: "+275760-09-13T00:00:00Z" })).toEqual(asked({}));
  });

  test("is never more than the server answers, and nonsense is the usual", () => {
    const to = now - hour;
    expect(asked({ from: iso(now - 400 * 24 * hour), to: iso(to) })).toEqual({ from: to - 31 * 24 * hour, to });
    expect(asked({ from: iso(now), to: iso(now - hour) })).toEqual({ from: now - 24 * hour, to: null });
    expect(asked({ from: "yesterday" })).toEqual({ from: now - 24 * hour, to: null });
  });
});

test("earlier and later move by half, and beyond now there is nothing", () => {
  expect(shifted(now - 4 * hour, now, -1, now)).toEqual({ from: now - 6 * hour, to: now - 2 * hour });
  expect(shifted(now - 8 * hour, now - 4 * hour, 1, now)).toEqual({ from: now - 6 * hour, to: now - 2 * hour });
  expect(shifted(now - 6 * hour, now - 2 * hour, 1, now)).toBeNull();
});

test("a group of events is shown with room at its sides, and ends after its last or now", () => {
  expect(around(now - hour, now - hour, now)).toEqual({ from: now - hour - 60e3, to: now - hour + 60e3 });
  expect(around(now - hour, now - 1000, now).to).toBe(now);
  expect(around(now - hour, now, now).to).toBe(now + 1);
});

test("a field of date and time holds the moment in the zone that is shown", () => {
  expect(fieldValue(now, "utc")).toBe("2026-03-10T12:00");
  expect(fieldMoment("2026-03-10T12:00", "utc")).toBe(now);
  expect(fieldMoment(fieldValue(now, "local"), "local")).toBe(now);
  expect(fieldMoment("", "utc")).toBeNull();
});

test("ticks are round, apart, and name the day where one begins", () => {
  const all = ticks(now - 24 * hour, now, 900, "utc");
  expect(all.map((tick) => tickWords(tick, "utc"))).toEqual([
    "12:00",
    "15:00",
    "18:00",
    "21:00",
    "10 Mar",
    "03:00",
    "06:00",
    "09:00",
    "12:00",
  ]);
  for (const width of [300, 900, 2000])
    for (const length of [hour / 4, hour, 24 * hour, 31 * 24 * hour]) {
      const some = ticks(now - length, now, width, "utc");
      const gaps = some.slice(1).map((tick, i) => ((tick.at - (some[i]?.at ?? 0)) / length) * width);
      expect(Math.min(...gaps, Number.POSITIVE_INFINITY)).toBeGreaterThanOrEqual(88 - 1e-6);
    }
});

const user = (at: number, id = `${at}-0`): Told =>
  tell({
    id,
    at: iso(now + at),
    actor: { kind: "key", id: "1", name: "abcdef", address: "", requestId: "", reason: "" },
    verb: "created",
    kind: "user",
    object: "1",
    before: null,
    after: { name: "ana" },
  } as unknown as Change);

test.each([
  ["ana", true],
  ["created ana", true],
  ["bob", false],
  ["by:abcde", true],
  ["-by:abcde", false],
  ["by:mei", true],
  ["laptop created", true],
  ["-by:mei", false],
  ["by:ana", false],
])("events are found by what their line says, and by the comment of the key: %s", (line, found) =>
  expect(
    matches(
      user(0),
      parse(line, eventFilterFields),
      eventFilter(() => "Mei, laptop"),
    ),
  ).toBe(found),
);

describe("marks", () => {
  const x = (at: number) => at - now;

  test("stand alone where there is room, and are one where they would touch", () => {
    const marks = marksOf(
      [200, 110, 100, 40].map((at) => user(at)),
      "users",
      x,
    );
    expect(marks.map((mark) => [mark.x, mark.told.length])).toEqual([
      [40, 1],
      [105, 2],
      [200, 1],
    ]);
  });

  test("are never closer than a finger needs, and none is lost", () => {
    const places = Array.from({ length: 400 }, (_, i) => ((i * 7919) % 4001) + i / 1000).sort((a, b) => b - a);
    const all = places.map((at, i) => user(at, `1-${i}`));
    const marks = marksOf(all, "users", x);
    expect(marks.reduce((sum, mark) => sum + mark.told.length, 0)).toBe(400);
    for (const [i, mark] of marks.slice(1).entries()) expect(mark.x - (marks[i]?.x ?? 0)).toBeGreaterThanOrEqual(cell);
  });

  test("of another lane are not there, and one lane can have all", () => {
    expect(marksOf([user(1)], "keys", x)).toEqual([]);
    expect(marksOf([user(1)], "all", x)).toHaveLength(1);
  });

  test("are reached by arrow keys: along a lane, and to the nearest of the next that has any", () => {
    const mark = (lane: EventMark["lane"], place: number): EventMark => ({
      id: `${lane}${place}`,
      lane,
      x: place,
      told: [],
    });
    const all = [mark("nodes", 10), mark("nodes", 90), mark("policy", 20), mark("policy", 80)];
    const go = (from: number, key: string) => moved(all, all[from] as EventMark, key)?.id;
    expect(go(0, "ArrowRight")).toBe("nodes90");
    expect(go(1, "ArrowRight")).toBeUndefined();
    expect(go(1, "ArrowDown")).toBe("policy80");
    expect(go(2, "ArrowUp")).toBe("nodes10");
    expect(go(0, "ArrowUp")).toBeUndefined();
    expect(go(3, "Home")).toBe("policy20");
  });
});

test("the name of a mark begins with what stands in it", () => {
  const name = (count: number) => text.timeline.markMany(countWords(count), text.timeline.eventsOf(count), "a", "b");
  expect(name(13)).toBe("13 events, a to b. Show this range");
  expect(name(283)).toBe("99+: 283 events, a to b. Show this range");
});

test("lanes are asked of the server by their kinds", () => {
  expect(lanesOf("")).toBe(lanes);
  expect(lanesOf("nonsense")).toBe(lanes);
  expect(kindsOf(lanes)).toBeUndefined();
  expect(kindsOf(lanesOf("nodes,routes"))).toBe("node");
  expect(kindsOf(lanesOf("keys,policy"))).toBe("preauthkey,apikey,policy");
});

test("usual strips are of servers with outages, then of routers and exit nodes", () => {
  const node = (givenName: string, more: Partial<Node> = {}) =>
    ({ id: givenName, givenName, tags: ["tag:x"], approvedRoutes: [], availableRoutes: [], ...more }) as Node;
  const routes = { approvedRoutes: ["10.0.0.0/8"], availableRoutes: ["10.0.0.0/8"] };
  const nodes = [node("quiet"), node("router", routes), node("shaky"), node("laptop", { tags: [] })];
  // Offline for ten minutes of each half hour.
  const flapping = (nodeId: string) => ({ nodeId, online: [0.67, 0.67, 0.67], changes: 6 });
  const presence = new Map([
    ["shaky", flapping("shaky")],
    ["laptop", flapping("laptop")],
    ["router", { nodeId: "router", online: [1, 1, 1], changes: 0 }],
  ]);
  expect(usualNodes(nodes, presence).map((each) => each.id)).toEqual(["shaky", "router"]);
});
