import { describe, expect, it } from "vitest";
import { lineAfter, lineChanges, mergedText, mergeLines, outdented, withoutChange } from "./changes";

const base = ["one", "two", "three", "four", "five", "six", "seven", ""].join("\n");

describe("changed lines", () => {
  it("are found with their numbers, at the ends too", () => {
    expect(lineChanges(base, base.replace("two", "2"))).toEqual([{ fromA: 1, toA: 2, fromB: 1, toB: 2 }]);
    expect(lineChanges(base, base.replace("two\n", ""))).toEqual([{ fromA: 1, toA: 2, fromB: 1, toB: 1 }]);
    expect(lineChanges(base, base.replace("two\n", "two\nmore\n"))).toEqual([{ fromA: 2, toA: 2, fromB: 2, toB: 3 }]);
    expect(lineChanges("a", "b")).toEqual([{ fromA: 0, toA: 1, fromB: 0, toB: 1 }]);
    expect(lineChanges("a\n", "a\nb\n")).toEqual([{ fromA: 1, toA: 1, fromB: 1, toB: 2 }]);
    expect(lineChanges("a\nb\n", "a\n")).toEqual([{ fromA: 1, toA: 2, fromB: 1, toB: 1 }]);
  });

  it("tell where an old line is now", () => {
    const changes = lineChanges(base, base.replace("two\n", "").replace("five", "5\n5a"));
    expect([1, 2, 3, 4, 5, 6].map((line) => lineAfter(changes, line))).toEqual([1, 2, 2, 3, 4, 6]);
  });
});

describe("undoing a change", () => {
  const changed = base.replace("two", "2");

  it("restores the text before it", () => {
    expect(withoutChange(base, changed, changed)).toBe(base);
  });

  it("keeps later changes", () => {
    expect(withoutChange(base, changed, changed.replace("six", "6\n6a"))).toBe(base.replace("six", "6\n6a"));
  });

  it("keeps later changes of adjacent lines", () => {
    const added = base.replace("two\n", "two\na\n");
    expect(withoutChange(base, added, added.replace("a\n", "a\nb\n"))).toBe(base.replace("two\n", "two\nb\n"));
    expect(withoutChange(base, added, added.replace("a\n", "b\na\n"))).toBe(base.replace("two\n", "two\nb\n"));
    const removed = base.replace("two\n", "");
    expect(withoutChange(base, removed, removed.replace("three", "3"))).toBe(base.replace("three", "3"));
  });

  it("changes nothing if it was undone before", () => {
    expect(withoutChange(base, changed, base)).toBe(base);
  });

  it("is refused if the same lines changed later", () => {
    expect(withoutChange(base, changed, base.replace("two", "22"))).toBe(null);
  });
});

describe("merging", () => {
  const merge = (mine: string, theirs: string) => mergeLines(base, mine, theirs);
  const conflicts = (mine: string, theirs: string) => merge(mine, theirs).filter((part) => "mine" in part);

  it("takes both changes where they are apart", () => {
    const parts = merge(base.replace("two", "2"), base.replace("six", "6\n6a"));
    expect(mergedText(parts, [])).toBe(base.replace("two", "2").replace("six", "6\n6a"));
  });

  it("takes equal changes once", () => {
    const both = base.replace("two", "2");
    expect(mergedText(merge(both, both), [])).toBe(both);
  });

  it("keeps what one side did when the other did nothing", () => {
    const changed = base.replace("two\n", "").replace("seven", "7");
    expect(mergedText(merge(changed, base), [])).toBe(changed);
    expect(mergedText(merge(base, changed), [])).toBe(changed);
  });

  it("leaves the choice where both changed the same lines", () => {
    const parts = merge(base.replace("two", "mine"), base.replace("two\nthree", "theirs\n3"));
    expect(conflicts(base.replace("two", "mine"), base.replace("two\nthree", "theirs\n3"))).toEqual([
      { mine: ["mine", "three"], theirs: ["theirs", "3"] },
    ]);
    expect(mergedText(parts, ["mine"])).toBe(base.replace("two", "mine"));
    expect(mergedText(parts, ["theirs"])).toBe(base.replace("two\nthree", "theirs\n3"));
    expect(mergedText(parts, ["both"])).toContain("mine\nthree\ntheirs\n3\nfour");
  });

  it("leaves the choice where both put something in the same place", () => {
    expect(conflicts(base.replace("two\n", "two\na\n"), base.replace("two\n", "two\nb\n"))).toEqual([
      { mine: ["a"], theirs: ["b"] },
    ]);
  });

  it("does not take a line away that the other side changed", () => {
    expect(conflicts(base.replace("two\n", ""), base.replace("two", "2"))).toEqual([{ mine: [], theirs: ["2"] }]);
  });
});

it("takes away the space that all lines begin with", () => {
  expect(outdented(["    a", "", "      b"])).toBe("a\n\n  b");
  expect(outdented([])).toBe("");
});
