import { describe, expect, test } from "vitest";
import type { Node, NodeHost } from "@/api";
import { matches, parse } from "@/filter";
import {
  type Around,
  attentionOf,
  byName,
  dnsName,
  newestVersion,
  outages,
  stateOf,
  systemName,
  waitingRoutes,
} from "./facts";
import { asksHosts, nodeFilter, nodeFilterFields, staleAge } from "./filter";
import { stripOf } from "./strip";

const now = Date.parse("2026-03-02T12:00:00Z");
const node = (fields: Partial<Node> = {}): Node =>
  ({
    id: "1",
    givenName: "db-fra-2",
    hostname: "DB",
    ipAddresses: ["100.64.0.1", "fd7a:115c:a1e0::1"],
    tags: [],
    os: "linux",
    user: { name: "ana" },
    online: true,
    expired: false,
    ephemeral: false,
    lastSeen: "2026-03-02T11:00:00Z",
    clientVersion: "1.90.8-t1",
    availableRoutes: [],
    approvedRoutes: [],
    subnetRoutes: [],
    preAuthKey: null,
    ...fields,
  }) as Node;
const fits = (line: string, fields?: Partial<Node>) =>
  matches(node(fields), parse(line, nodeFilterFields), nodeFilter(now));

test("the relay of a node is asked for where a filter names one", () => {
  const terms = parse("relay:fra is:online", nodeFilterFields);
  const hosts = new Map([["1", { relay: { id: 900, code: "FRA", name: "Frankfurt" } } as NodeHost]]);
  expect(asksHosts(terms)).toBe(true);
  expect(asksHosts(parse("tag:relay relay", nodeFilterFields))).toBe(false);
  expect(matches(node({ id: "1" }), terms, nodeFilter(now, hosts))).toBe(true);
  expect(matches(node({ id: "2" }), terms, nodeFilter(now, hosts))).toBe(false);
  expect(matches(node({ id: "1" }), terms, nodeFilter(now))).toBe(false);
});

describe("filter words of nodes", () => {
  test.each<[string, Partial<Node>, boolean]>([
    ["user:ana", {}, true],
    ["user:ana", { tags: ["tag:db"] }, false],
    ["tag:db -tag:prod", { tags: ["tag:db"] }, true],
    ["is:online os:linux version:<1.92", {}, true],
    ["is:offline", { online: false, expired: true }, false],
    ["seen:>30d", { online: false, lastSeen: "2026-01-01T00:00:00Z" }, true],
    ["seen:>30d", { lastSeen: "2026-01-01T00:00:00Z" }, false],
    ["route:10.0.0.0/8", { availableRoutes: ["10.20.0.0/16"] }, true],
    ["100.64", {}, true],
    ["fd7a:115c", {}, true],
    ["is:waiting", { availableRoutes: ["10.0.0.0/8"] }, true],
    ["is:unapproved", { needsApproval: true }, true],
    ["is:unapproved", { needsApproval: false, availableRoutes: ["10.0.0.0/8"] }, false],
    ["is:nonsense", {}, false],
  ])("%s", (line, fields, wanted) => expect(fits(line, fields)).toBe(wanted));
});

test("an exit node waits once, not for each family", () => {
  expect(waitingRoutes(node({ availableRoutes: ["0.0.0.0/0", "::/0", "10.0.0.0/8"] }))).toEqual([
    "0.0.0.0/0",
    "10.0.0.0/8",
  ]);
  expect(waitingRoutes(node({ availableRoutes: ["::/0"], approvedRoutes: ["::/0"] }))).toEqual([]);
});

test("an expired key counts more than a connection", () => expect(stateOf(node({ expired: true }))).toBe("expired"));

test("names sort by their numbers", () => {
  const names = ["web-10", "web-9", "Web-1"].map((givenName) => node({ givenName }));
  expect(names.sort(byName).map((n) => n.givenName)).toEqual(["Web-1", "web-9", "web-10"]);
  expect(newestVersion([node(), node({ clientVersion: "1.100.0" }), node({ clientVersion: "" })])).toBe("1.100.0");
});

const told = (changes: number, ...online: number[]) => new Map([["1", { nodeId: "1", online, changes }]]);

test.each([
  [true, 0, 0],
  [true, 1, 0],
  [true, 2, 1],
  [true, 5, 2],
  [false, 1, 1],
  [false, 4, 2],
])("online %s after %d changes went away %d times", (online, changes, count) =>
  expect(outages(node({ online }), told(changes).get("1"))).toBe(count),
);

describe("attention", () => {
  const needs = (fields: Partial<Node>, around: Partial<Around> = {}) =>
    attentionOf(node(fields), { presence: undefined, owned: undefined, now, ...around });

  test("is for servers that are away, not for laptops and not for those long gone", () => {
    expect(needs({ online: false })).toBe(null);
    expect(needs({ online: false, tags: ["tag:a"] })).toBe("offline");
    expect(needs({ online: false, tags: ["tag:a"], lastSeen: "2026-02-01T00:00:00Z" })).toBe(null);
  });
  test("is for servers that come and go, however briefly", () => {
    const flapping = told(4, 0.9, 0.9);
    expect(needs({ tags: ["tag:a"] }, { presence: flapping })).toBe("flapping");
    expect(needs({ tags: ["tag:a"] }, { presence: told(2, 0.9, 1) })).toBe(null);
    expect(needs({}, { presence: flapping })).toBe(null);
    expect(needs({ tags: ["tag:a"], ephemeral: true }, { presence: flapping })).toBe(null);
  });
  test("is for tags that nobody owns, once that is known", () => {
    const owned = new Set(["tag:a"]);
    expect(needs({ tags: ["tag:a", "tag:old"] }, { owned })).toBe("unowned");
    expect(needs({ tags: ["tag:a"] }, { owned })).toBe(null);
    expect(needs({ tags: ["tag:old"] })).toBe(null);
  });
  test("is first for what a person has to do", () => {
    expect(needs({ needsApproval: true, expired: true })).toBe("approval");
    expect(needs({ expired: true, availableRoutes: ["10.0.0.0/8"] })).toBe("expired");
    expect(needs({ availableRoutes: ["10.0.0.0/8"], tags: ["tag:a"], online: false })).toBe("waiting");
  });
});

describe("the strip of a day", () => {
  const runs = (list: { from: number; length: number }[]) => list.map(({ from, length }) => [from, length]);
  test.each<[string, number[], boolean, number[][], number[][]]>([
    ["is a bar while nothing is wrong", [1, 1, 1], true, [[0, 3]], []],
    ["has a whole notch for a brief outage", [1, 0.9, 1], true, [[0, 3]], [[1, 1]]],
    [
      "keeps notches of one that flaps apart",
      [1, 0.6, 0.7, 1],
      true,
      [[0, 4]],
      [
        [1, 0.5],
        [2, 0.5],
      ],
    ],
    [
      "joins what was away with its ends",
      [1, 0.25, 0, 0.5, 1],
      true,
      [
        [0, 2],
        [3, 2],
      ],
      [[1.25, 2.25]],
    ],
    ["begins when it first came, and ends when it went", [0, 0.7, 1, 0.2, 0], false, [[1, 2]], []],
    ["has a notch for what it came back from just now", [1, 1, 0.4], true, [[0, 3]], [[2, 1]]],
    ["is empty without a share", [0, 0], false, [], []],
  ])("%s", (_, shares, online, bars, notches) => {
    const strip = stripOf(shares, online);
    expect([runs(strip.bars), runs(strip.notches)]).toEqual([bars, notches]);
  });
});

test.each([
  ["Ana's MacBook Pro", "anas-macbook-pro"],
  ["  a__b..c ", "a-b-c"],
  ["Zoë", "zoe"],
  ["--", ""],
])("%j becomes %j", (typed, name) => expect(dnsName(typed)).toBe(name));

test.each([
  ["seen:>90d", 90],
  ["tag:ci seen:>30d", 30],
  ["seen:>5d", null],
  ["-seen:>90d", null],
  ["seen:<90d", null],
  ["seen:>90", null],
])("%s asks for nodes away for %s days", (line, days) => expect(staleAge(parse(line, nodeFilterFields))).toBe(days));

test("systems are written as their makers do, and others as the device does", () => {
  expect(["linux", "iOS", "plan9", "constructor"].map(systemName)).toEqual(["Linux", "iOS", "plan9", "constructor"]);
});
