import { expect, test } from "vitest";
import { addressFamily, addressProblem } from "./addressCheck";

test.each([
  ["100.64.7.1", "IPv4"],
  ["fd7a:115c:a1e0::701", "IPv6"],
  ["::", "IPv6"],
  ["100.64.7", undefined],
  ["100.64.7.256", undefined],
  ["100.64.7.0/24", undefined],
  ["fd7a::1%eth0", undefined],
  ["db-1", undefined],
  ["", undefined],
])("%j is of the family %s", (text, family) => expect(addressFamily(text)).toBe(family));

const others = [{ givenName: "db-1", ipAddresses: ["100.64.0.9", "fd7a:115c:a1e0::9"] }];

test.each([
  ["100.64.0.10", "IPv4", undefined],
  ["100.64.0.9", "IPv4", "db-1 already has this address."],
  ["fd7a:115c:a1e0:0:0:0:0:9", "IPv6", "db-1 already has this address."],
  ["fd7a:115c:a1e0::9", "IPv4", "Not a valid IPv4 address."],
  ["", "IPv6", "Not a valid IPv6 address."],
] as const)("%j as %s: %s", (typed, family, problem) =>
  expect(addressProblem(typed, family, true, others)).toBe(problem),
);

test("a node without IPv6 may stay without", () => expect(addressProblem("", "IPv6", false, others)).toBeUndefined());
