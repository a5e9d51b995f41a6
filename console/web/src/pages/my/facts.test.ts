import { expect, test } from "vitest";
import type { Node, PreAuthKey } from "@/api";
import { devicesOf, keysOf } from "./facts";

const ana = { name: "ana" };
const bob = { name: "bob" };

test("own devices are those of the person that have no tags", () => {
  const node = (givenName: string, more: object) => ({ givenName, tags: [], user: ana, ...more }) as unknown as Node;
  const all = [
    node("b", {}),
    node("a", {}),
    node("c", { user: bob }),
    node("d", { tags: ["tag:x"] }),
    node("e", { user: null }),
  ];
  expect(devicesOf(all, "ana").map((each) => each.givenName)).toEqual(["a", "b"]);
  expect(devicesOf(all, "")).toEqual([]);
});

test("own keys are the usable ones without tags, and those that expire first come first", () => {
  const now = Date.parse("2026-03-02T12:00:00Z");
  const key = (id: string, expiration: string, more: object = {}) =>
    ({
      id,
      expiration,
      aclTags: [],
      user: ana,
      used: false,
      reusable: false,
      expired: false,
      ...more,
    }) as unknown as PreAuthKey;
  const all = [
    key("late", "2026-03-02T20:00:00Z"),
    key("soon", "2026-03-02T13:00:00Z"),
    key("over", "2026-03-02T11:00:00Z"),
    key("used", "2026-03-02T13:00:00Z", { used: true }),
    key("bob", "2026-03-02T13:00:00Z", { user: bob }),
    key("tagged", "2026-03-02T13:00:00Z", { aclTags: ["tag:x"] }),
  ];
  expect(keysOf(all, "ana", now).map(({ id }) => id)).toEqual(["soon", "late"]);
});
