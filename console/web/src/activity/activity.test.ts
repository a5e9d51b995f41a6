import { describe, expect, test } from "vitest";
import type { Change, Node } from "@/api";
import { text } from "@/text";
import { differences } from "./diff";
import { groupEvents } from "./group";
import { agoWords } from "./lastChange";
import { lengthWords, percentWords, shareOnline, spansOf } from "./presence";
import { eventWords } from "./words";

const node = (change: Partial<Node> = {}) =>
  ({
    id: "1",
    givenName: "web-1",
    hostname: "web-1",
    tags: ["tag:web"],
    user: null,
    approvedRoutes: [],
    availableRoutes: [],
    subnetRoutes: [],
    ipAddresses: ["100.64.0.1"],
    expiry: null,
    expired: false,
    nodeKey: "nodekey:a",
    clientVersion: "1.98.2",
    ...change,
  }) as unknown as Node;

let revision = 100;
const entry = (change: Partial<Change>): Change => ({
  id: `${revision--}-0`,
  at: "2026-03-01T10:00:00Z",
  actor: { kind: "key", id: "3", name: "Ulc23LnJgyvl", address: "192.0.2.7", requestId: "R", reason: "" },
  verb: "changed",
  kind: "node",
  object: "1",
  before: null,
  after: null,
  ...change,
});
const server = { kind: "server", id: "", name: "", address: "", requestId: "", reason: "" };
const nodeEntry = (before: Node | null, after: Node | null, more: Partial<Change> = {}) =>
  entry({ before: before as never, after: after as never, ...more });
const of = (kind: string, before: unknown, after: unknown, more: Partial<Change> = {}) =>
  entry({ kind, before: before as never, after: after as never, ...more });

describe("a change in words", () => {
  test.each<[string, string, Change]>([
    ["web-1 joined", "nodes", nodeEntry(null, node())],
    ["web-1 deleted", "nodes", nodeEntry(node(), null)],
    ["web-1 removed after going offline", "nodes", nodeEntry(node(), null, { actor: server })],
    ["web-1's key expired", "nodes", nodeEntry(node(), node({ expired: true }))],
    [
      "web-1's key expired",
      "nodes",
      nodeEntry(node({ expired: true }), node({ expired: true }), { actor: { ...server, reason: "expired" } }),
    ],
    ["web-1 signed in again", "nodes", nodeEntry(node({ expired: true }), node({ nodeKey: "nodekey:b" }))],
    ["web-1 approved", "nodes", nodeEntry(node({ needsApproval: true }), node({ needsApproval: false }))],
    ["Approval of web-1 withdrawn", "nodes", nodeEntry(node({ needsApproval: false }), node({ needsApproval: true }))],
    ["web-1 renamed to www", "nodes", nodeEntry(node(), node({ givenName: "www" }))],
    ["Tags changed on web-1: +tag:db −tag:web", "nodes", nodeEntry(node(), node({ tags: ["tag:db"] }))],
    ["web-1's key now expires in 30d", "nodes", nodeEntry(node(), node({ expiry: "2026-03-31T10:00:00Z" }))],
    ["Key expiry disabled for web-1", "nodes", nodeEntry(node({ expiry: "2026-03-31T10:00:00Z" }), node())],
    ["web-1 now runs 1.98.4", "nodes", nodeEntry(node(), node({ clientVersion: "1.98.4" }))],
    ["web-1 changed", "nodes", nodeEntry(node(), node())],
    [
      "web-1 advertises exit node, 10.0.0.0/8",
      "routes",
      nodeEntry(node(), node({ availableRoutes: ["10.0.0.0/8", "0.0.0.0/0", "::/0"] })),
    ],
    ["10.0.0.0/8 approved on web-1", "routes", nodeEntry(node(), node({ approvedRoutes: ["10.0.0.0/8"] }))],
    ["10.0.0.0/8 disabled on web-1", "routes", nodeEntry(node({ approvedRoutes: ["10.0.0.0/8"] }), node())],
    ["web-1 now serves 10.0.0.0/8", "routes", nodeEntry(node(), node({ subnetRoutes: ["10.0.0.0/8"] }))],
    ["web-1 no longer serves 10.0.0.0/8", "routes", nodeEntry(node({ subnetRoutes: ["10.0.0.0/8"] }), node())],
    [
      "Route preference changed on web-1: 10.1.0.0/16 to 0, 10.0.0.0/8 to 5",
      "routes",
      nodeEntry(
        node({ routePreferences: { "10.1.0.0/16": 2 } }),
        node({ routePreferences: { "10.0.0.0/8": 5 }, updatedAt: "2026-03-01T10:00:00Z" }),
      ),
    ],
    ["User ana created", "users", of("user", null, { name: "ana" })],
    ["User ana renamed to anna", "users", of("user", { name: "ana" }, { name: "anna" })],
    [
      "Pre-auth key NiHB9 created for tag:ci",
      "keys",
      of("preauthkey", null, { key: "flp_NiHB9MH8xfRN_***", aclTags: ["tag:ci"] }),
    ],
    [
      "API key Ulc23 revoked",
      "keys",
      of(
        "apikey",
        { prefix: "flk_Ulc23LnJgyvl_***", expired: false },
        { prefix: "flk_Ulc23LnJgyvl_***", expired: true },
      ),
    ],
    ["Policy version 3 saved", "policy", of("policy", null, { version: "3", confirmBy: null, source: "api" })],
    [
      "Trial of policy version 3 started",
      "policy",
      of("policy", null, { version: "3", confirmBy: "2026-03-01T10:05:00Z" }),
    ],
    [
      "Policy reverted, now version 4",
      "policy",
      of("policy", null, { version: "4", confirmBy: null, source: "api" }, { actor: server }),
    ],
    ["Device approved for ana", "signins", of("login", null, { user: { name: "ana" }, rejected: "" })],
    ["Device rejected", "signins", of("login", null, { user: null, rejected: "unknown" })],
    [
      "SSH session from a to root@b approved",
      "signins",
      of("sshgrant", null, { session: { sshUser: "root", sourceName: "a", targetName: "b" }, rejected: "" }),
    ],
    ["DNS settings changed", "server", of("dns", {}, {})],
    [
      "Webhook to hooks.example disabled",
      "server",
      of(
        "webhook",
        { url: "https://hooks.example/x", enabled: true },
        { url: "https://hooks.example/x", enabled: false },
      ),
    ],
    ["relay 7: created", "server", of("relay", null, {}, { object: "7", verb: "created" })],
  ])("%s", (title, lane, change) => {
    expect(eventWords(change)).toMatchObject({ title, lane });
  });

  test("names the actor, and a key by its public part", () => {
    expect(eventWords(nodeEntry(null, node())).actor).toBe("API key Ulc23");
    expect(eventWords(nodeEntry(null, node(), { actor: server })).actor).toBe("the server");
  });

  test("shows what a device hides in its name", () => {
    expect(eventWords(nodeEntry(null, node({ givenName: "a\u202eb" }))).title).toBe("a\ufffdb joined");
  });
});

test.each([
  ["10:00:12", "12 seconds ago"],
  ["09:59:00", "1 second ago"],
  ["10:02:00", "2m ago"],
])("at %s it was changed %s", (now, words) =>
  expect(agoWords("2026-03-01T10:00:00Z", Date.parse(`2026-03-01T${now}Z`))).toBe(words),
);

describe("changes that happened together", () => {
  const device = (id: string) => ({ ...server, kind: "node", id });
  const joined = (at: string, tags: string[], id = at) =>
    nodeEntry(null, node({ tags }), { at: `2026-03-01T${at}Z`, actor: device(id) });

  test("are one line with the tag they share, whatever happened between", () => {
    const groups = groupEvents([
      joined("10:04:00", ["tag:ci", "tag:prod"]),
      of("user", null, { name: "ana" }, { at: "2026-03-01T10:03:00Z" }),
      joined("10:02:00", ["tag:ci"]),
      joined("10:00:00", ["tag:ci"]),
    ]);
    expect(groups.map((group) => group.words.title)).toEqual(["3 ci nodes joined", "User ana created"]);
  });

  test("share no tag when one has another", () => {
    const [group] = groupEvents([joined("10:04:00", ["tag:ci"]), joined("10:03:00", ["tag:db"])]);
    expect(group?.words.title).toBe("2 nodes joined");
  });

  test("are not those that lie more than five minutes apart, or that others did", () => {
    expect(groupEvents([joined("10:06:00", []), joined("10:00:59", [])])).toHaveLength(2);
    const other = nodeEntry(null, node(), { at: "2026-03-01T10:06:00Z" });
    expect(groupEvents([joined("10:06:00", []), other])).toHaveLength(2);
  });
});

test("figures by name have a line each", () => {
  const after = node({ routePreferences: { "10.0.0.0/8": 5, "10.1.0.0/16": -1 } });
  expect(differences({ before: node() as never, after: after as never })).toEqual([
    { field: "Route preferences", before: [], after: ["10.0.0.0/8: 5", "10.1.0.0/16: -1"] },
  ]);
});

test("a difference leaves out what did not change and what changes always", () => {
  const before = { ...node({ tags: ["tag:a", "tag:b"] }), updatedAt: "1", lastSeen: "1" };
  const after = { ...node({ tags: ["tag:a"], user: { name: "ana" } as never }), updatedAt: "2", lastSeen: "2" };
  expect(differences({ before: before as never, after: after as never })).toEqual([
    { field: "Tags", before: ["tag:a", "tag:b"], after: ["tag:a"] },
    { field: "Owner", before: [], after: ["ana"] },
  ]);
});

test("the members of a node are in words, each once", () => {
  const joined = {
    ...node({ expiry: "2026-08-28T10:44:44.992503Z" }),
    name: "web-1",
    registerMethod: "REGISTER_METHOD_CLI",
  };
  const list = differences({ before: null, after: joined as never });
  const fields = list.map(({ field }) => field);
  expect(new Set(fields).size).toBe(fields.length);
  expect(list).toContainEqual({ field: "Name", before: [], after: ["web-1"] });
  expect(list).toContainEqual({ field: "Joined via", before: [], after: [text.nodes.joinedBy.REGISTER_METHOD_CLI] });
  expect(list.flatMap(({ after }) => after)).toContain("2026-08-28 10:44:44 UTC");
  expect(JSON.stringify(list)).not.toMatch(/REGISTER_|\dT\d/);
});

describe("presence", () => {
  const at = (minute: number) => Date.UTC(2026, 2, 1, 10, minute);
  const iso = (minute: number) => new Date(at(minute)).toISOString();
  const told = (onlineBefore: boolean, ...minutes: number[]) => ({
    from: iso(0),
    onlineBefore,
    transitions: minutes.map((minute, i) => ({ at: iso(minute), online: onlineBefore === (i % 2 === 1) })),
  });

  test("is spans, and a gap is being away after having been there", () => {
    expect(spansOf(told(false, 10, 20, 25), at(0), at(60))).toEqual([
      { from: at(0), to: at(10), online: false, gap: false },
      { from: at(10), to: at(20), online: true, gap: false },
      { from: at(20), to: at(25), online: false, gap: true },
      { from: at(25), to: at(60), online: true, gap: false },
    ]);
  });

  test("is cut to the period that is shown", () => {
    expect(spansOf(told(true, 10, 20), at(15), at(30))).toEqual([
      { from: at(15), to: at(20), online: false, gap: true },
      { from: at(20), to: at(30), online: true, gap: false },
    ]);
  });

  test("is not known before a node joined", () => {
    const spans = spansOf({ ...told(false), from: iso(30), transitions: [] }, at(0), at(60));
    expect(spans).toEqual([{ from: at(30), to: at(60), online: false, gap: false }]);
    expect(shareOnline([])).toBeNull();
  });

  test("never says that all was well when it was not", () => {
    expect(percentWords(1)).toBe("100 %");
    expect(percentWords(0.99999)).toBe("99.9 %");
    expect(shareOnline(spansOf(told(true, 15, 30), at(0), at(60)))).toBe(0.75);
  });

  test.each([
    [45e3, "45 s"],
    [12 * 60e3, "12 min"],
    [200 * 60e3, "3 h 20 min"],
    [24 * 3600e3, "1 d"],
    [52 * 3600e3, "2 d 4 h"],
  ])("%d ms is %s", (length, words) => expect(lengthWords(length)).toBe(words));
});
