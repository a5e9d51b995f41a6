import { describe, expect, it } from "vitest";
import type { ApiKey, Node, NodeBuckets, PendingLogin, ServerCheck, ServerState, User } from "@/api";
import { attentionLines, type Known } from "./attention";
import { courseOf, nearest, outline, routesInService } from "./figures";
import { healthLines } from "./health";

const now = Date.parse("2026-03-02T12:00:00Z");
const node = (id: string, more: Partial<Node> = {}): Node =>
  ({
    id,
    givenName: `n${id}`,
    tags: [],
    user: { id: "1", name: "ana" },
    online: true,
    expired: false,
    expiry: null,
    ephemeral: false,
    lastSeen: "2026-03-02T11:00:00Z",
    availableRoutes: [],
    approvedRoutes: [],
    subnetRoutes: [],
    ...more,
  }) as Node;
const check = (part: string, status: ServerCheck["status"], ...output: string[]): ServerCheck => ({
  part,
  status,
  output,
  since: "2026-03-01T00:00:00Z",
});
const server = (more: Partial<ServerState> = {}): ServerState =>
  ({
    url: "https://mesh.example.com",
    startedAt: "2026-02-01T00:00:00Z",
    database: "postgres",
    checks: [],
    relays: [],
    replicas: [],
    ...more,
  }) as ServerState;
const known = (more: Partial<Known>): Known => ({
  now,
  session: { key: { id: "1", prefix: "k7Qx2", expiration: null }, server: "1.0", console: "1.0" },
  relative: () => "in 6d",
  may: () => true,
  ...more,
});
const said = (more: Partial<Known>) =>
  attentionLines(known(more)).map((l) => `${l.subject} ${l.rest} → ${l.verb} ${l.to}`);

describe("what needs attention", () => {
  it("is nothing in a network that is well", () => {
    expect(said({ nodes: [node("1")], server: server({ checks: [check("database", "pass")] }) })).toEqual([]);
  });
  it("names single routers and counts many", () => {
    const router = (id: string) => node(id, { availableRoutes: ["10.31.0.0/16", "10.32.0.0/16"] });
    expect(said({ nodes: [router("1"), node("2", { availableRoutes: ["0.0.0.0/0", "::/0"] })] })).toEqual([
      "n1 advertises 10.31.0.0/16 and 1 more (approval needed) → Review /routes",
      "n2 advertises itself as an exit node (approval needed) → Review /routes",
    ]);
    expect(said({ nodes: [node("1", { availableRoutes: ["0.0.0.0/0", "::/0", "10.31.0.0/16"] })] })).toEqual([
      "n1 advertises 10.31.0.0/16 and 1 more (approval needed) → Review /routes",
    ]);
    expect(said({ nodes: ["1", "2", "3", "4"].map(router) })).toEqual([
      "4 nodes advertise routes that need approval → Review /routes",
    ]);
  });
  it("counts users and nodes without approval, and names a single node", () => {
    const held = node("1", { needsApproval: true });
    expect(said({ nodes: [held, node("2")], users: [{ needsApproval: true } as User, {} as User] })).toEqual([
      "1 user is waiting for approval → Review /requests",
      "n1 is waiting for approval → Review /requests",
    ]);
    expect(said({ nodes: [held, node("2", { needsApproval: true })] })).toEqual([
      "2 nodes are waiting for approval → Review /requests",
    ]);
  });
  it("leads held suspensions to where somebody decides about them, and names them once", () => {
    const warning = "suspensions held: the identity provider no longer accepts 2 people";
    const users = [{ suspensionHeldAt: "2026-03-02T11:00:00Z" } as User, {} as User];
    const state = server({ checks: [check("identity", "warn", warning)] });
    expect(said({ users, server: state })).toEqual(["1 suspension is held until you decide → Review /requests"]);
    expect(said({ server: state })).toEqual([`Sign-in : ${warning} → Open /settings/server`]);
  });
  it("asks nobody for what they may not do", () => {
    const nodes = [node("1", { availableRoutes: ["10.0.0.0/8"] })];
    expect(attentionLines(known({ nodes, may: () => false })).map((line) => line.verb)).toEqual(["Show"]);
  });
  it("puts what is broken before who waits, and what will end last", () => {
    const lines = attentionLines(
      known({
        nodes: [node("1", { expired: true }), node("2", { expiry: "2026-03-05T00:00:00Z" })],
        logins: [{ code: "A", hostname: "phone", os: "iOS", address: "192.0.2.7" } as PendingLogin],
        server: server({ checks: [check("database", "fail", "gone")] }),
      }),
    );
    expect(lines.map((line) => line.id)).toEqual(["check database", "login A", "expired", "expiring"]);
  });
  it("tells that there is no policy, and nothing while that is not known", () => {
    expect(said({ policy: null })).toEqual([
      "No policy is set, so every node can reach every other node → Open /policy",
    ]);
    expect(said({ policy: undefined })).toEqual([]);
  });
  it("leads a failing test to its line", () => {
    const [line] = attentionLines(
      known({ server: server({ checks: [check("policy", "warn", "test on line 21: ana should reach tag:db:5432")] }) }),
    );
    expect(line).toMatchObject({ to: "/policy", search: { line: "21" } });
  });
  it("speaks of servers that went today, not of laptops and not of those long gone", () => {
    const away = (id: string, tags: string[], lastSeen: string) => node(id, { tags, lastSeen, online: false });
    expect(
      said({
        nodes: [
          away("1", ["tag:db"], "2026-03-02T11:00:00Z"),
          away("2", [], "2026-03-02T11:00:00Z"),
          away("3", ["tag:db"], "2026-02-02T11:00:00Z"),
        ],
      }),
    ).toEqual(["n1 (server) is offline → Show /nodes"]);
  });
  it("leads to servers that come and go, however briefly, and not to laptops", () => {
    const flapping = (nodeId: string, changes: number): [string, NodeBuckets] => [
      nodeId,
      { nodeId, online: [0.9, 0.9], changes },
    ];
    const lines = attentionLines(
      known({
        nodes: [node("1", { tags: ["tag:db"] }), node("2"), node("3", { tags: ["tag:db"] })],
        presence: new Map([flapping("1", 4), flapping("2", 9), flapping("3", 3)]),
      }),
    );
    expect(lines).toMatchObject([{ id: "unsteady", subject: "1 server", to: "/timeline", search: { nodes: "1" } }]);
  });
  it("leads to many servers that went by the column that tells when", () => {
    const nodes = ["1", "2", "3", "4"].map((id) => node(id, { tags: ["tag:db"], online: false }));
    expect(attentionLines(known({ nodes }))).toMatchObject([{ search: { tab: "offline", sort: "-seen" } }]);
  });
  it("rotates the key that ends, and lets choose among several", () => {
    const ending = (id: string) => ({ id, prefix: id, expired: false, expiration: "2026-03-08T00:00:00Z" }) as ApiKey;
    const of = (more: Partial<Known>) => attentionLines(known(more)).map(({ verb, search }) => [verb, search]);
    expect(of({ apiKeys: [ending("7")] })).toEqual([["Rotate", { rotate: "7" }]]);
    expect(of({ apiKeys: [ending("7"), ending("8")] })).toEqual([["Show", { sort: "expires" }]]);
    expect(of({ apiKeys: [ending("7")], may: () => false })).toEqual([["Show", undefined]]);
    const session = { ...known({}).session, key: ending("1") };
    expect(of({ session })).toEqual([["Rotate", { rotate: "1" }]]);
  });
  it("warns of the session's own key when little time is left", () => {
    const key = (expiration: string) => ({ id: "1", prefix: "k7Qx2", expiration });
    const of = (expiration: string) =>
      attentionLines(known({ session: { key: key(expiration), server: "1", console: "1" } })).map((l) => l.tone);
    expect(of("2026-03-04T00:00:00Z")).toEqual(["warn"]);
    expect(of("2026-03-10T00:00:00Z")).toEqual(["info"]);
    expect(of("2026-04-10T00:00:00Z")).toEqual([]);
    expect(of("2026-03-01T00:00:00Z")).toEqual([]);
  });
  it("tells that server and console differ", () => {
    const session = { ...known({}).session, console: "0.9" };
    expect(attentionLines(known({ session })).map((line) => line.id)).toEqual(["versions"]);
  });
});

describe("figures", () => {
  it("adds shares of nodes, and counts a user once", () => {
    const nodes = [node("1"), node("2"), node("3", { tags: ["tag:db"] })];
    const shares = (nodeId: string, ...online: number[]) => [nodeId, { nodeId, online, changes: 0 }] as const;
    const presence = new Map([shares("1", 1, 0), shares("2", 0.5, 0), shares("3", 1, 1)]);
    expect(courseOf(nodes, presence)).toEqual({ online: [3, 1], users: [1, 0] });
    expect(courseOf([], new Map())).toEqual({ online: [], users: [] });
  });
  it("draws steady values as a line in the box, and one value not at all", () => {
    expect(outline([5], 72, 28)).toBe("");
    expect(outline([0, 0], 72, 28)).toBe("M0.0 26.5 L72.0 26.5");
    for (const y of outline([150, 174, 160], 72, 28).matchAll(/ ([\d.]+)(?= L|$)/g)) {
      expect(Number(y[1])).toBeGreaterThanOrEqual(1.5);
      expect(Number(y[1])).toBeLessThanOrEqual(26.5);
    }
  });
  it("counts a network once and an exit node as one", () => {
    expect(
      routesInService([
        node("1", { subnetRoutes: ["10.0.0.0/8", "0.0.0.0/0", "::/0"] }),
        node("2", { subnetRoutes: ["10.0.0.0/8"] }),
      ]),
    ).toBe(2);
  });
  it("takes the nearest relay that was measured", () => {
    const relay = (medianMilliseconds: number | null) => ({ medianMilliseconds }) as ServerState["relays"][number];
    expect(nearest([relay(null), relay(20), relay(8)])).toBe(8);
    expect(nearest([relay(null)])).toBeNull();
  });
});

describe("health", () => {
  const same = { server: "1.0", console: "1.0" };
  it("describes each part in one sentence, in the server's words if it is unhealthy", () => {
    const lines = healthLines(
      server({
        checks: [check("service", "pass"), check("database", "pass"), check("clock", "warn", "set the clocks")],
      }),
      same,
    );
    expect(lines.map(({ status, words }) => [status, words])).toEqual([
      ["pass", "Reachable at https://mesh.example.com."],
      ["pass", "Connected to PostgreSQL."],
      ["warn", "set the clocks"],
      ["pass", "Server and console run 1.0."],
    ]);
    expect(lines[0]?.since).toBe("2026-02-01T00:00:00Z");
  });
  it("names three relays and counts the others", () => {
    const relays = [18.44, 4.21, null, 1].map((ms, id) => ({
      region: { id, code: `c${id}`, name: id ? "" : "Berlin" },
      medianMilliseconds: ms,
    })) as ServerState["relays"];
    const [line] = healthLines(server({ relays, checks: [check("relay", "pass")] }), same);
    expect(line?.words).toBe("Median latency from online nodes: Berlin 18 ms, c1 4.2 ms, c2 not measured, and 1 more.");
  });
  it("warns when server and console differ", () => {
    expect(healthLines(server(), { server: "2", console: "1" }).at(-1)?.status).toBe("warn");
  });
});

it("tells of a relay that nobody reaches, when others are reached", () => {
  const relay = (name: string, measured: number) =>
    ({ region: { id: measured, code: "", name }, measured, homes: 0 }) as ServerState["relays"][number];
  const of = (...relays: ServerState["relays"]) => said({ server: server({ relays }) });
  expect(of(relay("Berlin", 3), relay("Tokyo", 0))).toEqual([
    "Relay Tokyo can't be reached by any online node → Open /settings/server",
  ]);
  expect(of(relay("Tokyo", 0))).toEqual([]);
});
