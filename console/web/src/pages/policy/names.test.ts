import { describe, expect, it } from "vitest";
import type { Node, User } from "@/api";
import { readDocument } from "./document";
import { meaningOf, nameIn, nodesOf, personOf, suggestionsAt } from "./names";

const node = (name: string, owner: string | string[], online = false) =>
  ({
    givenName: name,
    tags: Array.isArray(owner) ? owner : [],
    user: Array.isArray(owner) ? undefined : { name: owner },
    online,
  }) as unknown as Node;

const network = {
  nodes: [
    node("db-1", ["tag:db", "tag:prod"], true),
    node("db-2", ["tag:db"]),
    node("ana-mbp", "ana", true),
    node("bo-pc", "bo@example.com"),
  ],
  users: [{ name: "ana" }, { name: "bo@example.com" }] as User[],
};
const document = readDocument(
  '{"groups": {"group:ops": ["ana@", "bo@example.com"]}, "hosts": {"office": "10.0.0.0/8"}, "tagOwners": {"tag:db": []}}',
);

describe("names in a policy", () => {
  it.each([
    ["tag:db:5432", "tag:db"],
    ["tag:db:*", "tag:db"],
    ["*:22", "*"],
    ["office:80,443", "office"],
    ["bo@example.com:22", "bo@example.com"],
    ["group:ops", "group:ops"],
    ["100.64.0.1", "100.64.0.1"],
  ])("%s is about %s", (literal, name) => expect(nameIn(literal)).toBe(name));

  it.each([
    ["tag:db", ["db-1", "db-2"]],
    ["group:ops", ["ana-mbp", "bo-pc"]],
    ["ana@", ["ana-mbp"]],
    ["autogroup:tagged", ["db-1", "db-2"]],
    ["autogroup:member", ["ana-mbp", "bo-pc"]],
  ])("%s means its nodes", (name, nodes) => {
    expect(nodesOf(name, document, network)?.map((n) => n.givenName)).toEqual(nodes);
  });

  it("says whom a name means now", () => {
    expect(meaningOf("tag:db:5432", document, network)).toEqual({ name: "tag:db", says: "2 nodes, 1 online" });
    expect(meaningOf("tag:prod", document, network)?.says).toContain("no owner");
    expect(meaningOf("group:ops", document, network)?.says).toBe("2 members: 2 nodes, 1 online");
    expect(meaningOf("office", document, network)?.says).toBe("10.0.0.0/8");
    expect(meaningOf("cem@", document, network)?.says).toBe("No user has this name");
    expect(meaningOf("accept", document, network)).toBeNull();
  });

  it("writes people as policies do", () => {
    expect([personOf("ana"), personOf("bo@example.com")]).toEqual(["ana@", "bo@example.com"]);
  });
});

describe("what may stand at a place", () => {
  const labels = (path: (string | number)[], atMember = false, typed = "") =>
    suggestionsAt(path, atMember, typed, document, network).map((s) => s.label);

  it("offers members of the document and of a rule", () => {
    expect(labels([""], true)).toContain("acls");
    expect(labels(["acls", 0, ""], true)).toEqual(["action", "proto", "src", "dst", "comment"]);
  });
  it("offers tags that nodes carry and nobody owns", () => {
    expect(labels(["tagOwners", ""], true)).toEqual(["tag:prod"]);
  });
  it("offers names, and ports once the name is written", () => {
    expect(labels(["acls", 0, "src", 0])).toEqual(
      expect.arrayContaining(["tag:db", "tag:prod", "group:ops", "ana@", "office", "autogroup:member", "*"]),
    );
    expect(labels(["acls", 0, "dst", 0], false, "tag:db")).toContain("tag:db");
    expect(labels(["acls", 0, "dst", 0], false, "tag:db:")).toContain("tag:db:5432");
    expect(labels(["acls", 0, "dst", 0], false, "tag:")).toContain("tag:db");
    expect(labels(["tests", 0, "accept", 0], false, "office:")).not.toContain("office:*");
  });
  it("offers people in groups, and nothing in comments", () => {
    expect(labels(["groups", "group:ops", 0])).toEqual(["ana@", "bo@example.com"]);
    expect(labels(["acls", 0, "comment"])).toEqual([]);
  });
});
