import { expect, it } from "vitest";
import { deviceName, oldestFirst } from "./facts";

it("names a device that has no name, and shows tricks in one that has", () => {
  expect(deviceName({ hostname: "" })).toBe("Unnamed device");
  expect(deviceName({ hostname: "a\u202eb" })).toBe("a\ufffdb");
});

it("adds those who come at the end", () => {
  const at = (since: string) => ({ since });
  const early = at("2026-03-01T09:00:00Z");
  const late = at("2026-03-01T09:00:00.5Z");
  expect(oldestFirst([late, early])).toEqual([early, late]);
  expect(oldestFirst(undefined)).toEqual([]);
});
