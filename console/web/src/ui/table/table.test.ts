import { describe, expect, test } from "vitest";
import type { Column } from "./columns";
import { columnsShown } from "./columns";
import { csvCell, toCSV } from "./csv";
import { freeze, layOut } from "./order";

const entries = (...ids: string[]) => ids.map((id) => ({ id, row: id }));
const ids = (list: readonly { id: string }[]) => list.map((e) => e.id).join("");

describe("a frozen order", () => {
  test.each([
    ["abc", "abc", "abc", 0],
    ["abc", "cab", "abc", 1],
    ["abc", "ac", "ac", 0],
    ["abc", "abcd", "abcd", 0],
    ["abc", "axbc", "abcx", 1],
    ["abcd", "dcba", "abcd", 3],
    ["", "ab", "ab", 0],
  ])("%s then %s shows %s", (before, after, shown, moved) => {
    const result = freeze([...before], entries(...after));
    expect(ids(result.entries)).toBe(shown);
    expect(result.moved).toBe(moved);
  });
});

test("groups without rows have no title", () => {
  const laid = layOut(
    [
      { id: "a", title: "A", rows: [] },
      { id: "b", title: "B", rows: ["x"] },
    ],
    (r) => r,
  );
  expect(laid.map((e) => e.id)).toEqual(["group:b", "x"]);
});

const columns: Column<{ name: string }>[] = [
  { id: "name", title: "Name", cell: (r) => r.name, csv: (r) => r.name, fixed: true },
  { id: "size", title: "Size", cell: () => "1", csv: () => "1" },
  { id: "more", title: "More", cell: () => "", extra: true },
];

test("columns are the usual ones, or those that were chosen and those that stay", () => {
  expect(ids(columnsShown(columns, ""))).toBe("namesize");
  expect(ids(columnsShown(columns, "more"))).toBe("namemore");
});

test.each([
  ["plain", "plain"],
  ['a "b", c', '"a ""b"", c"'],
  ["=1+1", "'=1+1"],
  ["-2", "'-2"],
  ["@x", "'@x"],
  ["a\nb", '"a\nb"'],
])("cell %j", (value, cell) => expect(csvCell(value)).toBe(cell));

test("a file has a head and a line for each row", () => {
  expect(toCSV(columns, [{ name: "a" }, { name: "+b" }])).toBe("Name,Size\r\na,1\r\n'+b,1\r\n");
});
