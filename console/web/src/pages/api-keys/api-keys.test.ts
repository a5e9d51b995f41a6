import { expect, test } from "vitest";
import type { ApiKey } from "@/api";
import { matches, parse } from "@/filter";
import { apiKeyFilter, apiKeyFilterFields, apiKeyName, apiKeyState, mostOf, scopesOf } from "./facts";

const now = Date.parse("2026-03-01T10:00:00Z");
const key = {
  id: "1",
  prefix: "flk_7Qd0XhVb2mTa_***",
  role: "operator",
  scopes: ["nodes"],
  comment: "Nightly backup",
  expired: false,
  expiration: "2026-03-01T10:00:01Z",
} as unknown as ApiKey;

test("a key is over when its time is, also before the server says so", () => {
  expect(apiKeyState(key, now)).toBe("usable");
  expect(apiKeyState(key, now + 1000)).toBe("expired");
  expect(apiKeyState({ ...key, expired: true }, now)).toBe("expired");
});

test("a key is known by its middle", () => expect(apiKeyName(key.prefix)).toBe("7Qd0XhVb2mTa"));

test("what was chosen becomes scopes, in the order of the list", () =>
  expect(scopesOf({ routes: "read", users: "full", dns: "" })).toEqual(["users", "routes:read"]));

test.each([
  ["nodes", [], "admin", "full"],
  ["nodes", [], "read", "read"],
  ["nodes", ["nodes"], "operator", "full"],
  ["nodes", ["nodes:read"], "admin", "read"],
  ["dns", ["nodes"], "admin", ""],
] as const)("of %s a key with %j that makes one of role %s gives %j", (noun, own, role, most) =>
  expect(mostOf(noun, own, role)).toBe(most),
);

test.each([
  ["backup", true],
  ["7qd0", true],
  ["role:operator is:usable", true],
  ["role:admin", false],
  ["is:expired", false],
])("the filter %j", (line, wanted) =>
  expect(matches(key, parse(line, apiKeyFilterFields), apiKeyFilter(now))).toBe(wanted),
);
