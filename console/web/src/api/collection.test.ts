import { describe, expect, test } from "vitest";
import { addPage, applyChanges, type Collection, putItem } from "./collection";
import type { Change } from "./types";

interface Item {
  id: string;
  name: string;
}
const item = (id: string, name = id): Item => ({ id, name });
const change = (at: string, verb: string, id: string, name?: string): Change =>
  ({ id: at, verb, object: id, kind: "x", after: verb === "deleted" ? null : item(id, name) }) as unknown as Change;
const names = (c: Collection<Item>) => c.items.map((i) => i.name).join(" ");
const list = (...ids: string[]) =>
  addPage(
    undefined,
    ids.map((id) => item(id)),
    "100",
    true,
  );

describe("changes", () => {
  test("create, change and delete", () => {
    const after = applyChanges(list("a", "b"), [
      change("101-0", "created", "c"),
      change("101-1", "changed", "a", "A"),
      change("102-0", "deleted", "b"),
    ]);
    expect(names(after)).toBe("A c");
  });

  test("that the list shows already change nothing", () => {
    const before = list("a");
    expect(applyChanges(before, [change("100-3", "changed", "a", "old"), change("99-0", "deleted", "a")])).toBe(before);
  });

  test("of one revision are all taken, in their order", () => {
    const first = applyChanges(list("a"), [change("101-0", "changed", "a", "one")]);
    expect(names(applyChanges(first, [change("101-1", "changed", "a", "two")]))).toBe("two");
  });

  test("older than what is known of an object are left out, by length before digits", () => {
    const known = applyChanges(list("a"), [change("1000-0", "changed", "a", "new")]);
    expect(names(applyChanges(known, [change("999-0", "changed", "a", "old")]))).toBe("new");
  });
});

describe("pages that come after changes", () => {
  const first = addPage(undefined, [item("a")], "100", false);

  test("do not undo them", () => {
    const changed = applyChanges(first, [change("105-0", "changed", "b", "new"), change("106-0", "deleted", "c")]);
    expect(names(addPage(changed, [item("b", "old"), item("c")], "104", true))).toBe("a new");
  });

  test("count when they are later", () => {
    const changed = applyChanges(first, [change("105-0", "changed", "b", "older")]);
    expect(names(addPage(changed, [item("b", "newer")], "106", true))).toBe("a newer");
  });

  test("show an object of which the stream told something that says nothing without it", () => {
    const told = applyChanges(first, [change("105-0", "online", "b")], () => null);
    expect(names(addPage(told, [item("b")], "104", true))).toBe("a b");
  });

  test("say when they are the last", () => {
    expect(first.complete).toBe(false);
    expect(addPage(first, [], "100", true).complete).toBe(true);
  });
});

test("what a write answered is not undone by what was before it", () => {
  const put = putItem(list("a"), item("a", "mine"), "110");
  expect(names(applyChanges(put, [change("109-0", "changed", "a", "before")]))).toBe("mine");
});
