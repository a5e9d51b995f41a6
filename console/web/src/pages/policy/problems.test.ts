import { expect, it } from "vitest";
import { placesIn, rangeInLine, syntaxProblems } from "./problems";

it("finds nothing in comments and trailing commas", () => {
  expect(syntaxProblems('// a\n{"acls": [1, /* b */ 2,],}\n')).toEqual([]);
});

it("says once for each line what is missing, and where", () => {
  const found = syntaxProblems('{\n  "acls": [\n    { "src" ["*"] },\n  ],\n}\n');
  expect(found).toEqual([{ line: 3, column: 13, text: "Expected a colon" }]);
});

it("finds an end that is missing", () => {
  expect(syntaxProblems('{\n  "acls": [').map((p) => p.line)).toEqual([2]);
});

it("counts lines from 1 and columns in characters, not in halves of them", () => {
  const text = 'a\n{"😀": \n';
  expect([0, 1, 2, 8, 10, 11].map(placesIn(text))).toEqual([
    { line: 1, column: 1 },
    { line: 1, column: 2 },
    { line: 2, column: 1 },
    { line: 2, column: 6 },
    { line: 3, column: 1 },
    { line: 3, column: 1 },
  ]);
});

it.each([
  ['  "src": ["gruop:ops"]', 11, '"gruop:ops"'],
  ['"😀", "x"', 6, '"x"'],
  ["  { a: b }", 0, "{ a: b }"],
  ["[1", 3, "1"],
  ["", 1, ""],
])("marks the word of %j at column %i", (line, column, marked) => {
  const { from, to } = rangeInLine(line, column);
  expect(line.slice(from, to)).toBe(marked);
});
