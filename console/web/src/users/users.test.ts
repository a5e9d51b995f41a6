import { describe, expect, it } from "vitest";
import type { Node, User } from "@/api";
import { matches, parse } from "@/filter";
import { holdingsOf, isActive, isUserName, readMentions, roleSource, userFilter, userFilterFields } from ".";
import { taggedBy } from "./facts";
import { removal } from "./writes";

const user = (id: string, name: string, email = ""): User =>
  ({ id, name, email, provider: "", displayName: "", nodeCount: 0 }) as User;
const node = (owner: User | null, more: Partial<Node>): Node =>
  ({ user: owner, tags: [], online: false, lastSeen: "2026-03-01T00:00:00Z", ...more }) as Node;

describe("what a user has", () => {
  const ana = user("1", "ana");
  it("counts the user's own nodes and not those with tags", () => {
    const of = holdingsOf([
      node(ana, { online: true, lastSeen: "2026-03-02T00:00:00Z" }),
      node(ana, {}),
      node(ana, { tags: ["tag:web"], online: true }),
      node(user("2", "bob"), {}),
    ]);
    expect(of(ana)).toEqual({ total: 2, online: 1, lastSeen: "2026-03-02T00:00:00Z" });
    expect(of(user("3", "eve"))).toEqual({ total: 0, online: 0, lastSeen: null });
  });
  it("has brought in those with tags that the user created, whoever owns them now", () => {
    const web = node(null, { id: "7", tags: ["tag:web"], createdBy: ana });
    const all = [web, node(null, { tags: ["tag:web"], createdBy: user("2", "bob") }), node(ana, {}), node(null, {})];
    expect(taggedBy(all, ana)).toEqual([web]);
  });
  it("goes without tagged nodes unless they are asked for", () => {
    expect(removal([ana], false)).toEqual({ ids: ["1"], action: "delete" });
    expect(removal([ana], true)).toEqual({ ids: ["1"], action: "delete", deleteTagged: true });
  });
  it("is the server's count while a part of the nodes is missing", () => {
    const of = holdingsOf([node(ana, { online: true })], false);
    expect(of({ ...ana, nodeCount: 7 }).total).toBe(7);
  });
  it("is active by a node online now or seen within a day", () => {
    const now = Date.parse("2026-03-02T12:00:00Z");
    const at = (online: number, lastSeen: string | null) => isActive({ total: 1, online, lastSeen }, now);
    expect(at(1, "2026-01-01T00:00:00Z")).toBe(true);
    expect(at(0, "2026-03-01T12:00:01Z")).toBe(true);
    expect(at(0, "2026-03-01T12:00:00Z")).toBe(false);
    expect(at(0, null)).toBe(false);
  });
});

describe("a role", () => {
  const of = (more: Partial<User>) => roleSource({ ...user("1", "ana"), ...more });
  it("says where it comes from", () => {
    expect(of({ role: "admin", assignedRole: "admin" })).toBe("Admin, assigned by an administrator");
    expect(of({ role: "read", roleGroup: "audit" })).toBe("Read-only, from the group audit at the identity provider");
    expect(of({ role: "member" })).toBe("Member, by default");
    expect(of({})).toBe("None");
    expect(of({ needsApproval: true })).toBe("None until the user is approved");
  });
  it("is a filter", () => {
    const by = userFilter(holdingsOf([]), undefined, 0);
    const finds = (line: string, more: Partial<User>) =>
      matches({ ...user("1", "ana"), ...more }, parse(line, userFilterFields), by);
    expect(finds("role:admin", { role: "admin" })).toBe(true);
    expect(finds("role:admin", { role: "read" })).toBe(false);
    expect(finds("role:none", {})).toBe(true);
  });
});

it("knows which names the server takes", () => {
  for (const name of ["ana", "Ana.B_c-d@example.com"]) expect(isUserName(name)).toBe(true);
  for (const name of ["", "1ana", "ana b", "ana/b", "é"]) expect(isUserName(name)).toBe(false);
});

describe("where a policy names a user", () => {
  const policy = `{
  // who runs it
  "groups": {
    "group:ops": ["ana@", "bob"],
    "group:all": ["group:ops", "ANA@example.com"],
  },
  "tagOwners": {"tag:web": ["ana"]},
  "acls": [
    {"action": "accept", "src": ["bob@"], "dst": ["*:*"]},
    {
      "action": "accept", "src": ["ana", "ana@"], "dst": ["ana@:443", "100.64.0.1:80"]},
  ],
  "ssh": [{"action": "accept", "src": ["bob"], "dst": ["autogroup:self"], "users": ["ana"]}],
  "autoApprovers": {"routes": {"10.0.0.0/8": ["ana@"]}, "exitNode": ["bob"]},
  "tests": [{"src": "ana", "accept": ["tag:web:443"]}],
}`;
  const ana = user("1", "Ana", "ana@example.com");
  const { all, groups } = readMentions(policy);

  it("finds it by name, with @, by e-mail and with ports, once for each rule", () => {
    expect(all(ana).map(({ section, name, line }) => [section, name, line])).toEqual([
      ["groups", "group:ops", 4],
      ["tagOwners", "tag:web", 7],
      ["acls", "", 10],
      ["autoApprovers", "", 14],
      ["tests", "", 15],
      ["groups", "group:all", 5],
    ]);
  });
  it("does not take a user of a target's system for a user of the network", () => {
    expect(all(user("4", "ana")).some((mention) => mention.section === "ssh")).toBe(false);
    expect(all(user("2", "bob")).map((m) => m.section)).toEqual(["groups", "acls", "ssh", "autoApprovers"]);
  });
  it("lists groups for the list of users", () => {
    expect(groups(ana).map((m) => m.name)).toEqual(["group:ops", "group:all"]);
  });
  it("finds nobody in a text that is not a policy", () => {
    for (const text of ["", "[]", "{", '"ana"', '{"groups": "ana"}']) expect(readMentions(text).all(ana)).toEqual([]);
  });
});

describe("the filter of users", () => {
  const now = Date.parse("2026-03-02T12:00:00Z");
  const ana = user("1", "ana", "ana@example.com");
  const bob = { ...user("2", "bob"), provider: "OIDC", suspendedAt: "2026-03-01T00:00:00Z" };
  const of = holdingsOf([node(ana, { online: true }), node(bob, { lastSeen: "2026-01-01T00:00:00Z" })]);
  const by = userFilter(of, readMentions('{"groups": {"group:ops": ["ana@"]}}'), now);
  const found = (line: string) =>
    [ana, bob, { ...user("3", "eve"), needsApproval: true, suspensionHeldAt: "2026-03-01T00:00:00Z" }]
      .filter((each) => matches(each, parse(line, userFilterFields), by))
      .map((u) => u.name);
  it.each([
    ["an", ["ana"]],
    ["is:active", ["ana"]],
    ["is:idle", ["bob", "eve"]],
    ["is:empty", ["eve"]],
    ["group:ops", ["ana"]],
    ["-group:ops", ["bob", "eve"]],
    ["source:local", ["ana", "eve"]],
    ["source:oidc", ["bob"]],
    ["seen:>30d", ["bob", "eve"]],
    ["email:example", ["ana"]],
    ["is:suspended", ["bob"]],
    ["is:held", ["eve"]],
    ["is:unapproved", ["eve"]],
    ["is:constructor", []],
  ])("%s", (line, names) => expect(found(line)).toEqual(names));
});
