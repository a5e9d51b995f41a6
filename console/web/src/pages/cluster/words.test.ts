import { expect, test } from "vitest";
import type { Relay } from "@/api";
import { bytes, duration, relayMark, replication } from "./words";

test.each([
  [0, "0 bytes"],
  [1, "1 byte"],
  [1023, "1,023 bytes"],
  [5000, "4.9 KiB"],
  [3 * 1024 ** 3, "3.0 GiB"],
  [5000 * 1024 ** 4, "5000 TiB"],
])("%i bytes are %s", (count, words) => expect(bytes(count)).toBe(words));

test.each([
  [2, "2 ms"],
  [7500, "7.5 s"],
  [150_000, "3 min"],
])("%i milliseconds are %s", (millis, words) => expect(duration(millis)).toBe(words));

test.each([
  ["sync", "Synchronous"],
  ["async", "Asynchronous"],
  ["toString", "toString"],
])("%s replication is %s", (sync, words) => expect(replication(sync)).toBe(words));

test.each([
  ["waiting", undefined, "off"],
  ["active", undefined, "on"],
  ["active", true, "on"],
  ["active", false, "bad"],
  ["draining", true, "warn"],
  ["offline", true, "bad"],
])("the mark of a relay that is %s and reachable (%s) is %s", (state, reachable, mark) => {
  const probe = reachable === undefined ? null : { reachable };
  expect(relayMark({ state, probe } as Relay)).toBe(mark);
});
