import { expect, test } from "vitest";
import { shown } from "@/shell/KeyHelp";
import { printable, text } from "@/text";
import { keyName, resolve, type Shortcut } from "./shortcuts";
import { kept } from "./status";
import { absolute, relative } from "./time";

const now = Date.parse("2026-03-02T12:00:00Z");
test.each([
  ["2026-03-02T11:59:40Z", "just now"],
  ["2026-03-02T11:55:00Z", "5m ago"],
  ["2026-03-02T03:00:00Z", "9h ago"],
  ["2026-03-05T12:00:00Z", "in 3d"],
  ["2026-01-01T00:00:00Z", "2mo ago"],
  ["2020-03-02T12:00:00Z", "6y ago"],
])("%s is %s", (at, words) => expect(relative(at, now)).toBe(words));

test("a moment in full has UTC", () => expect(absolute("2026-03-02T12:00:00Z", "utc")).toBe("2026-03-02 12:00 UTC"));

const list: Shortcut[] = ["j", "g n", "g o", "X", "Mod+K"].map((keys) => ({
  keys,
  label: keys,
  group: "",
  run: () => {},
}));
test.each([
  ["", "j", "j", ""],
  ["", "g", undefined, "g"],
  ["g", "n", "g n", ""],
  ["g", "j", "j", ""],
  ["g", "g", undefined, "g"],
  ["", "q", undefined, ""],
])("after %j the key %s", (before, key, found, begun) => {
  const result = resolve(list, before, key);
  expect([result.found?.keys, result.begun]).toEqual([found, begun]);
});

test("keys have one name on every system", () => {
  const press = (key: string, more = {}) => keyName({ key, ctrlKey: false, metaKey: false, altKey: false, ...more });
  expect([
    press("x"),
    press("X"),
    press("k", { metaKey: true }),
    press("k", { ctrlKey: true }),
    press("a", { altKey: true }),
  ]).toEqual(["x", "X", "Mod+K", "Mod+K", ""]);
  expect(["X", "g n", "Mod+K", "?"].map(shown)).toEqual([["Shift", "x"], ["g", "n"], ["Ctrl", "K"], ["?"]]);
});

test("names from devices cannot turn or hide text", () => {
  expect(printable("a\u202egnp.exe\u0000")).toBe("a\ufffdgnp.exe\ufffd");
  expect(printable("x".repeat(300))).toHaveLength(254);
});

test("counts have their plural", () =>
  expect([text.common.nodes(1), text.common.nodes(1200)]).toEqual(["1 node", "1,200 nodes"]));

test("a failure stands until it is dismissed, whatever is done after it", () => {
  const failure = { failure: { why: "", requestId: "" } };
  const done = [{ n: 1 }, { n: 2 }, { n: 3 }, { n: 4 }].map((each) => ({ ...each, failure: undefined }));
  expect(kept([failure, ...done])).toEqual([failure, ...done.slice(1)]);
  expect(kept(Array.from({ length: 9 }, () => failure))).toHaveLength(9);
});
