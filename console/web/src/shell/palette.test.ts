import { Zap } from "lucide-react";
import { describe, expect, test } from "vitest";
import type { Node } from "@/api";
import { type Entry, found } from "./entries";
import { rulesOf } from "./rules";
import { nodeWork } from "./work";

const entry = (id: string, group: string, more: Partial<Entry> = {}): Entry => ({
  id,
  title: id,
  words: "",
  icon: Zap,
  group,
  run: () => {},
  ...more,
});
const names = (groups: [string, Entry[]][]) => groups.map(([group, list]) => [group, ...list.map((each) => each.id)]);

describe("the palette", () => {
  const entries = [
    entry("Nodes", "Pages"),
    entry("web-db", "Nodes", { note: "100.64.0.7" }),
    entry("db-1", "Nodes"),
    entry("db-2", "Nodes"),
    entry("tag:db", "Tags"),
  ];

  test("shows what begins with the word before what holds it, and of equals what was used lately first", () => {
    expect(names(found(entries, "db", ["db-2"], "Recent"))).toEqual([
      ["Nodes", "db-2", "db-1", "web-db"],
      ["Tags", "tag:db"],
    ]);
  });

  test("finds by notes and other words", () => {
    expect(names(found(entries, "100.64.0.7", [], "Recent"))).toEqual([["Nodes", "web-db"]]);
    expect(found(entries, "nowhere", [], "Recent")).toEqual([]);
  });

  test("begins with what was used lately, of what is still there", () => {
    expect(names(found(entries, "", ["gone", "db-1"], "Recent"))[0]).toEqual(["Recent", "db-1"]);
  });

  test("shows no more of a group than can be read", () => {
    const many = Array.from({ length: 5000 }, (_, i) => entry(`node-${i}`, "Nodes"));
    expect(found(many, "node", [], "Recent")[0]?.[1]).toHaveLength(8);
  });
});

describe("work with nodes", () => {
  const node = (id: string, givenName: string, more = {}) =>
    ({
      id,
      givenName,
      ipAddresses: [`100.64.0.${id}`],
      expired: false,
      approvedRoutes: [],
      availableRoutes: [],
      ...more,
    }) as unknown as Node;
  const nodes = [
    node("1", "web-db"),
    node("2", "db-1"),
    node("3", "db-10", { expired: true, expiry: "2026-01-01T00:00:00Z" }),
  ];
  const work = (query: string) => nodeWork(nodes, query, () => {}).map((entry) => entry.id);

  test("is what the verb says, for the nodes of such a name", () => {
    expect(work("rename db")).toEqual(["rename:2", "rename:3", "rename:1"]);
    expect(work("del db-10")).toEqual(["delete:3"]);
  });
  test("is everything that fits the one node that is meant", () => {
    expect(work("db-1")).toEqual(["rename:2", "tags:2", "expire:2", "setExpiry:2", "delete:2"]);
    expect(work("100.64.0.3")).toEqual(["rename:3", "tags:3", "setExpiry:3", "neverExpire:3", "delete:3"]);
  });
  test("is nothing for many, and for none", () => {
    expect(work("db")).toEqual([]);
    expect(work("nowhere")).toEqual([]);
    expect(work("")).toEqual([]);
  });
});

describe("rules of a policy", () => {
  test("are found with their lines, comments and all", () => {
    const policy = `{
  // who may do what
  "acls": [
    { "action": "accept", "src": ["group:ops", "ana@"], "dst": ["*:*"] }, // everything
    {
      "action": "accept",
      "src": ["*"], "dst": ["tag:web:443"],
    },
  ],
  "ssh": [{ "src": ["ana@"], "dst": ["tag:db"] }],
}`;
    expect(rulesOf(policy)).toEqual([
      { line: 4, words: "group:ops, ana@ → *:*" },
      { line: 5, words: "* → tag:web:443" },
      { line: 10, words: "ana@ → tag:db" },
    ]);
  });

  test.each(["", "{", "[]", '{"acls": 3}', '{"acls": [3]}'])("of %j nothing breaks", (policy) => {
    expect(() => rulesOf(policy)).not.toThrow();
  });
});
