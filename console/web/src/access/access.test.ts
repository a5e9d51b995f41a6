import { describe, expect, it } from "vitest";
import type { AccessCell, AccessMap, AccessRule } from "@/api";
import { changeOf, commentAbove, linesOf, rowsOf, ruleText, shortPorts, splitName, withComments } from "./model";
import { bare } from "./since";

const cell = (over: Partial<AccessCell>): AccessCell => ({
  from: 0,
  to: 0,
  ports: ["port 22"],
  pairs: 1,
  of: 1,
  own: false,
  lost: [],
  gained: [],
  lostPairs: 0,
  gainedPairs: 0,
  changedPairs: 0,
  rules: [],
  ...over,
});
const rule = (over: Partial<AccessRule>): AccessRule => ({
  line: 4,
  draftLine: 4,
  list: "acls",
  comment: "",
  from: ["group:ops"],
  to: [{ name: "tag:db", ports: ["port 22"] }],
  via: [],
  change: "",
  ...over,
});
const principal = (kind: string, name: string) => ({ kind, name, id: "", nodes: 1, online: 1, expired: 0 });

describe("a map", () => {
  const map: AccessMap = {
    from: [principal("group", "group:ops")],
    to: [principal("tag", "tag:db")],
    moreFrom: 0,
    moreTo: 0,
    moreCells: 0,
    cells: [cell({ rules: [{ rule: 1, before: 2, after: 3 }] }), cell({ to: 7 })],
    rules: [rule({}), rule({ line: 9 })],
  };
  it("becomes rows with their ends and rules, and what names nothing is left out", () => {
    const rows = rowsOf(map);
    expect(rows.map((row) => row.id)).toEqual(["group:ops>tag:db"]);
    expect(rows[0]?.rules).toEqual([{ rule: rule({ line: 9 }), before: 2, after: 3 }]);
  });
});

it.each([
  [{}, ""],
  [{ gained: ["port 1"] }, "gained"],
  [{ lost: ["port 1"] }, "lost"],
  [{ lost: ["port 1"], gained: ["port 2"] }, "changed"],
])("%o is %s", (over, want) => expect(changeOf(cell(over))).toBe(want));

it("names the lines of the text that is looked at, once and in order", () => {
  const use = (over: Partial<AccessRule>) => ({ rule: rule(over), before: 1, after: 1 });
  expect(
    linesOf([
      use({ draftLine: 9 }),
      use({ draftLine: 3 }),
      use({ draftLine: 9 }),
      use({ change: "removed" }),
      use({ draftLine: 0 }),
    ]),
  ).toEqual([3, 9]);
});

it.each([
  [["ports 22, 5432"], "22, 5432"],
  [["all ports"], "all ports"],
  [["TCP port 22", "UDP ports 53, 60000-61000"], "tcp 22, udp 53, 60000-61000"],
  [["ICMP"], "ICMP"],
])("%j is short for ports", (ports, want) => expect(shortPorts(ports)).toBe(want));

it.each([
  ["tag", "tag:db", "tag", "db"],
  ["user", "ana", "user", "ana"],
  ["route", "fd00::/8", "route", "fd00::/8"],
  ["internet", "autogroup:internet", "autogroup", "internet"],
])("a %s %s is named by its kind and name", (kind, name, wantKind, wantName) =>
  expect(splitName(principal(kind, name))).toEqual({ kind: wantKind, name: wantName }),
);

describe("the text of a rule", () => {
  const text = `{
  "acls": [
    // why { not
    { "action": "accept", "src": ["a}"], "dst": ["b:1"] },
    {
      "action": "accept", // }
      "src": ["c"], /* } */ "dst": ["d:2"],
    },
  ],
}`;
  it("is its object on one line", () =>
    expect(ruleText(text, 4)).toBe('{ "action": "accept", "src": ["a}"], "dst": ["b:1"] }'));
  it("is its object on several, moved to the margin", () =>
    expect(ruleText(text, 5).split("\n")).toEqual([
      "{",
      '  "action": "accept", // }',
      '  "src": ["c"], /* } */ "dst": ["d:2"],',
      "}",
    ]));
  it("has the comment right above it", () => {
    expect(commentAbove(text, 4)).toBe("why { not");
    expect(commentAbove("{\n// a\n\n  // one,\n  // two\n  {}", 6)).toBe("one, two");
    expect(commentAbove(text, 5)).toBe("");
    expect(commentAbove(text, 0)).toBe("");
  });
  it("keeps the comment that is a member, and reads a removed rule where it was", () => {
    const rules = [
      rule({ comment: "own" }),
      rule({ change: "removed", line: 4, draftLine: 0 }),
      rule({ draftLine: 2 }),
    ];
    const map = { from: [], to: [], moreFrom: 0, moreTo: 0, moreCells: 0, cells: [], rules };
    expect(withComments(map, text, "// new\n{").rules.map((one) => one.comment)).toEqual(["own", "why { not", "new"]);
  });
  it("is the same whatever its comments and layout", () => {
    const rule = '{ "src": ["a, ]"], // why\n "dst": ["b"], /* , */ }';
    expect(bare(rule)).toBe('{"src":["a, ]"],"dst":["b"]}');
    expect(bare(`{"acls": [${rule},]}`)).toContain(bare('{"src": ["a, ]"], "dst": ["b"]}'));
  });
  it("is nothing beyond the end", () => expect(ruleText(text, 99)).toBe(""));
});
