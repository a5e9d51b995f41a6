import { describe, expect, it } from "vitest";
import type { Node, User } from "@/api";
import { addRule } from "@/policy/edits";
import { readDocument } from "./document";
import { inPolicy, nodesNamed, portsOf, ruleOf } from "./ruleForm";

const input = (part: object) => ({ who: ["ana@"], what: ["tag:db"], ports: "", proto: "", comment: "", ...part });

const network = {
  nodes: [
    { givenName: "db-1", ipAddresses: ["100.64.0.1", "fd00::1"] },
    { givenName: "ana", ipAddresses: ["100.64.0.2", "fd00::2"] },
  ] as Node[],
  users: [{ name: "ana" }] as User[],
};

describe("the form of a rule", () => {
  it("uses the addresses of a node, because rules can't use its name", () => {
    const document = readDocument('{"hosts": {"printer": "10.0.0.9"}}');
    const named = (name: string) => inPolicy(name, document, network);
    expect(nodesNamed("db", network)).toEqual([{ value: "db-1", note: "100.64.0.1" }]);
    expect(nodesNamed("", network)).toEqual([]);
    expect(named("DB-1")).toEqual(["100.64.0.1", "fd00::1"]);
    expect(["ana", "printer", "tag:db"].flatMap(named)).toEqual(["ana", "printer", "tag:db"]);
  });

  it("writes who reaches what on which ports", () => {
    const { rule } = ruleOf(input({ what: ["tag:db", "fd00::1"], ports: "5432, 8000-8100", proto: "tcp" }));
    expect(rule).toEqual({
      src: ["ana@"],
      dst: ["tag:db:5432,8000-8100", "[fd00::1]:5432,8000-8100"],
      proto: "tcp",
    });
    expect(rule && addRule('{"acls": []}', rule).text).toBe(
      '{"acls": [{ "action": "accept", "proto": "tcp", "src": ["ana@"], "dst": ["tag:db:5432,8000-8100", "[fd00::1]:5432,8000-8100"] }]}',
    );
  });

  it("means all ports without any, and for ICMP", () => {
    expect(ruleOf(input({})).rule?.dst).toEqual(["tag:db:*"]);
    expect(ruleOf(input({ proto: "icmp", ports: "22" })).rule).toEqual({
      src: ["ana@"],
      dst: ["tag:db:*"],
      proto: "icmp",
    });
  });

  it("keeps a comment on one line", () => {
    expect(ruleOf(input({ comment: " for\n the \r backup " })).rule?.comment).toBe("for the backup");
  });

  it("says what is missing at each field", () => {
    const { rule, errors } = ruleOf(input({ who: [], what: [], ports: "ssh" }));
    expect(rule).toBeNull();
    expect(Object.keys(errors)).toEqual(["who", "what", "ports"]);
  });

  it.each([
    ["", "*"],
    ["*", "*"],
    [" 22 ", "22"],
    ["80, 443", "80,443"],
    ["0", null],
    ["65536", null],
    ["90-80", null],
    ["22-", null],
    ["all", null],
  ])("ports %j are %j", (typed, want) => expect(portsOf(typed)).toBe(want));
});
