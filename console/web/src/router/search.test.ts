import { expect, test } from "vitest";
import { readSearch, writeSearch } from "./search";

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
