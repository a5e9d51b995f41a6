import { describe, expect, test } from "vitest";
import type { Node, NodeHost } from "@/api";
import { matches, parse } from "@/filter";
import { byName, dnsName, needsAttention, newestVersion, outages, stateOf, systemName, waitingRoutes } from "./facts";
import { asksHosts, nodeFilter, nodeFilterFields, staleAge } from "./filter";

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

test.each([
  [[1, 1, 0, 1, 0, 1], 2],
  [[0, 0, 1, 1], 0],
  [[1, 1, 0, 0], 0],
  [[], 0],
])("%j has %d outages", (presence, count) => expect(outages(presence)).toBe(count));

test("only servers need attention for being away", () => {
  expect(needsAttention(node({ online: false }), undefined, now)).toBe(false);
  expect(needsAttention(node({ online: false, tags: ["tag:a"] }), undefined, now)).toBe(true);
  expect(
    needsAttention(node({ online: false, tags: ["tag:a"], lastSeen: "2026-02-01T00:00:00Z" }), undefined, now),
  ).toBe(false);
  expect(needsAttention(node({ tags: ["tag:a"] }), [1, 0, 1, 0, 1], now)).toBe(true);
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
