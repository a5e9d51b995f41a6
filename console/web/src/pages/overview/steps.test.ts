import { describe, expect, it } from "vitest";
import type { ApiKey, Node, Policy } from "@/api";
import { allows } from "@/api/session";
import { allowsAll, type StepFacts, type StepName, stepsOf } from "./steps";

const now = Date.parse("2026-03-02T12:00:00Z");
const node = (more: Partial<Node> = {}): Node =>
  ({ id: "1", tags: [], availableRoutes: [], approvedRoutes: [], ...more }) as Node;
const policy = (rules: string): Policy => ({ policy: rules }) as Policy;
const key = (more: Partial<ApiKey> = {}): ApiKey =>
  ({ id: "1", role: "admin", scopes: [], expired: false, expiration: "2026-06-01T00:00:00Z", ...more }) as ApiKey;
const facts = (more: Partial<StepFacts> = {}): StepFacts => ({
  now,
  server: "http://mesh.example.com:8080",
  secure: true,
  backups: false,
  nodes: [node()],
  policy: null,
  apiKeys: [key()],
  may: () => true,
  ...more,
});
const done = (more: Partial<StepFacts>): StepName[] =>
  stepsOf(facts(more))
    .filter((step) => step.done)
    .map(({ name }) => name);
const names = (more: Partial<StepFacts>) => stepsOf(facts(more)).map(({ name }) => name);

describe("the next steps", () => {
  it("are all open after the first device", () => {
    expect(names({})).toEqual(["https", "policy", "apiKey", "backups", "tags", "router"]);
    expect(done({})).toEqual([]);
  });
  it("are unknown until all data is there", () => {
    for (const missing of ["nodes", "policy", "apiKeys"] as const) expect(names({ [missing]: undefined })).toEqual([]);
  });
  it("need HTTPS for devices and for this page", () => {
    const server = "https://mesh.example.com";
    expect(done({ server })).toEqual(["https"]);
    expect(done({ server, secure: false })).toEqual([]);
  });
  it("need a policy that restricts something", () => {
    expect(done({ policy: policy('{"acls": []}') })).toEqual(["policy"]);
    expect(done({ policy: policy('{"acls": [{"action": "accept", "src": ["*"], "dst": ["*:*"]}]}') })).toEqual([]);
  });
  it("need two admin keys that are valid and not limited to some resources", () => {
    const second = (more: Partial<ApiKey>) => done({ apiKeys: [key(), key({ id: "2", ...more })] });
    expect(second({})).toEqual(["apiKey"]);
    expect(second({ role: "operator" })).toEqual([]);
    expect(second({ scopes: ["nodes"] })).toEqual([]);
    expect(second({ expired: true })).toEqual([]);
    expect(second({ expiration: "2026-03-02T11:00:00Z" })).toEqual([]);
  });
  it("need a node with tags", () => {
    expect(done({ nodes: [node(), node({ tags: ["tag:db"] })] })).toEqual(["tags"]);
  });
  it("need a subnet route that is advertised and approved; an exit node is none", () => {
    const router = (approvedRoutes: string[]) =>
      done({ nodes: [node({ availableRoutes: ["10.0.0.0/8", "0.0.0.0/0", "::/0"], approvedRoutes })] });
    expect(router(["10.0.0.0/8"])).toEqual(["router"]);
    expect(router(["0.0.0.0/0", "::/0"])).toEqual([]);
    expect(router(["192.168.0.0/16"])).toEqual([]);
  });
  it("count backups as done when the person ticks them", () => {
    expect(done({ backups: true })).toEqual(["backups"]);
  });
  it("are only those that the key may take", () => {
    const of = (role: "read" | "operator" | "admin", ...scopes: string[]) =>
      names({ may: (right) => allows(role, scopes, right), apiKeys: undefined, policy: undefined });
    expect(of("read")).toEqual([]);
    expect(of("operator")).toEqual(["tags", "router"]);
    expect(of("admin", "nodes")).toEqual(["tags"]);
    expect(of("operator", "nodes:read", "routes")).toEqual(["router"]);
  });
});

describe("a policy allows everything", () => {
  it.each([
    '{"acls": [{"action": "accept", "src": ["*"], "dst": ["*:*"]}]}',
    '{"acls": [{"src": ["ana"], "dst": ["tag:db:22"]}, {"src": ["ana", "*"], "dst": ["*:*", "tag:db:22"]}]}',
    '{ /* so far */ "grants": [{"src": ["*"], "dst": ["*"], "ip": ["*"],},], }',
    '{"groups": {"group:ops": ["ana"]}}',
  ])("with %s", (text) => expect(allowsAll(text)).toBe(true));
  it.each([
    '{"acls": []}',
    '{"grants": []}',
    '{"acls": [{"action": "accept", "src": ["*"], "dst": ["*:443"]}]}',
    '{"acls": [{"action": "accept", "src": ["group:ops"], "dst": ["*:*"]}]}',
    '{"acls": [{"action": "accept", "proto": "icmp", "src": ["*"], "dst": ["*:*"]}]}',
    '{"grants": [{"src": ["*"], "dst": ["*"], "ip": ["tcp:443"]}]}',
    '{"grants": [{"src": ["*"], "dst": ["*"], "ip": ["*"], "via": ["tag:router"]}]}',
    '{"acls": [{"src": ["ana"], "dst": ["tag:db:22"]} // {"src": ["*"], "dst": ["*:*"]}\n]}',
  ])("not with %s", (text) => expect(allowsAll(text)).toBe(false));
});
