import { describe, expect, test } from "vitest";
import { addTerm, comparesVersion, type Fields, longerAgo, matches, parse, prefixContains, removeTerm } from ".";

const fields = ["tag", "user", "version", "is"];
const item = { name: "db-fra-2", tags: ["tag:db", "tag:prod"], address: "fd7a:115c:a1e0::7" };
const by: Fields<typeof item> = {
  text: (i, word) => i.name.includes(word) || i.address.startsWith(word),
  fields: { tag: (i, value) => i.tags.includes(`tag:${value}`), user: () => false, is: () => true },
};
const holds = (line: string) => matches(item, parse(line, fields), by);

describe("a filter line", () => {
  test.each([
    ["", true],
    ["db", true],
    ["DB-FRA", true],
    ["-db", false],
    ["tag:db", true],
    ["tag:web", false],
    ["tag:web,db", true],
    ["-tag:web", true],
    ["tag:db -tag:prod", false],
    ["db tag:prod -user:ana", true],
    ["fd7a:115c", true],
    ['"db-fra"', true],
    ['tag:"db"', true],
    ["tag:", true],
    ["-", true],
    ["nosuch:field", false],
  ])("%j", (line, wanted) => expect(holds(line)).toBe(wanted));

  test("keeps operators apart from values", () => {
    expect(parse("version:<=1.90", fields)).toEqual([
      { text: "version:<=1.90", negated: false, field: "version", op: "<=", values: ["1.90"] },
    ]);
  });

  test("can be changed word by word", () => {
    expect(addTerm("db  tag:db", "-user:ana")).toBe("db tag:db -user:ana");
    expect(addTerm("tag:db", "tag:db")).toBe("tag:db");
    expect(removeTerm('a tag:"x y" b', 'tag:"x y"')).toBe("a b");
  });
});

test.each([
  ["1.90.8", "=", "1.90", true],
  ["1.90.8", "=", "1.9", false],
  ["1.9.0", "<", "1.90", true],
  ["1.98.2", ">=", "1.98.2", true],
  ["1.98.2-t1234", ">", "1.98.2", false],
  ["", "<", "1.90", false],
  ["1.2.3", "<", "x", false],
] as const)("version %s %s %s", (version, op, wanted, holds) =>
  expect(comparesVersion(version, op, wanted)).toBe(holds),
);

test.each([
  ["2026-01-01T00:00:00Z", ">", "30d", true],
  ["2026-03-01T00:00:00Z", ">", "30d", false],
  ["2026-03-01T00:00:00Z", "<", "2d", true],
  [null, ">", "1y", true],
  ["2026-01-01T00:00:00Z", ">", "soon", false],
] as const)("%s %s %s ago", (at, op, wanted, holds) =>
  expect(longerAgo(at, op, wanted, Date.parse("2026-03-02T00:00:00Z"))).toBe(holds),
);

test.each([
  ["10.0.0.0/8", "10.20.0.0/16", true],
  ["10.20.0.0/16", "10.0.0.0/8", false],
  ["10.0.0.0/8", "10.1.2.3", true],
  ["0.0.0.0/0", "10.0.0.0/8", true],
  ["::/0", "10.0.0.0/8", false],
  ["fd7a:115c::/32", "fd7a:115c:a1e0::1", true],
  ["10.0.0/8", "10.0.0.1", false],
] as const)("%s contains %s", (network, inner, holds) => expect(prefixContains(network, inner)).toBe(holds));
