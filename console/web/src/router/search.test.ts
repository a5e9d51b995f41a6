import { expect, test } from "vitest";
import { oneOf, readSearch, writeSearch } from "./search";

test.each([
  [{}, ""],
  [{ q: "" }, ""],
  [{ q: "tag:db -user:ana", sort: "-seen" }, "?q=tag:db+-user:ana&sort=-seen"],
  [{ q: "route:10.0.0.0/8", cols: "a,b" }, "?q=route:10.0.0.0/8&cols=a,b"],
  [{ q: "a&b=c#d%" }, "?q=a%26b%3Dc%23d%25"],
])("%j is %s", (search, written) => {
  expect(writeSearch(search)).toBe(written);
  const full = Object.fromEntries(Object.entries(search).filter(([, value]) => value !== ""));
  expect(readSearch(written)).toEqual(full);
});

test.each(["__proto__", "constructor", "toString", ""])("%j in an address is not a known name", (word) =>
  expect(oneOf<"all" | "online">(word, { all: 1, online: 2 }, "all")).toBe("all"),
);
test("a name of ours in an address counts", () =>
  expect(oneOf<"all" | "online">("online", { all: 1, online: 2 }, "all")).toBe("online"));
