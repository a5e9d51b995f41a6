import { expect, test } from "vitest";
import { allows, type Right } from "./session";
import type { Role } from "./types";

test.each<[Role | "member", string[], Right, boolean]>([
  ["member", [], "nodes:read", true],
  ["member", [], "preauthkeys:read", true],
  ["member", [], "nodes:write", false],
  ["member", [], "users:read", false],
  ["member", [], "history:read", false],
  ["read", [], "nodes:read", true],
  ["read", [], "nodes:write", false],
  ["operator", [], "nodes:write", true],
  ["operator", [], "policy:write", false],
  ["operator", [], "preauthkeys:write", false],
  ["admin", [], "policy:write", true],
  ["admin", ["nodes"], "policy:read", false],
  ["admin", ["nodes"], "nodes:write", true],
  ["admin", ["nodes:read"], "nodes:write", false],
  ["admin", ["nodes:read"], "nodes:read", true],
])("%s with %j and %s: %s", (role, scopes, right, wanted) => expect(allows(role, scopes, right)).toBe(wanted));
