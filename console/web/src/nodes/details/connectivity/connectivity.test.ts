import { describe, expect, it, test } from "vitest";
import type { AccessCell, AccessMap, AccessPrincipal, AccessRule, Node, NodeHost } from "@/api";
import { directBetween } from "./direct";
import { hostOf, kindOf, sameNetwork, sortedEndpoints } from "./endpoints";
import { findingsOf } from "./findings";
import { visiblePeers } from "./visible";

const unknown: NodeHost["nat"] = { udp: null, ipv6: null, mappingVaries: null, portMapped: false, portMapping: [] };
const host = (nat: Partial<NodeHost["nat"]>, over: Partial<NodeHost> = {}): NodeHost => ({
  os: "linux",
  osVersion: "",
  distro: "",
  distroVersion: "",
  deviceModel: "",
  arch: "amd64",
  clientVersion: "1.92.3",
  endpoints: [],
  relay: { id: 902, code: "fra", name: "Frankfurt" },
  latencies: [{ region: { id: 902, code: "fra", name: "Frankfurt" }, milliseconds: 12 }],
  nat: { ...unknown, ...nat },
  health: [],
  reportedAt: "2026-03-02T12:00:00Z",
  ...over,
});
const silent = host({}, { relay: null, latencies: [], reportedAt: null });
const easy = { udp: true, ipv6: false, mappingVaries: false };
const hard = { udp: true, ipv6: false, mappingVaries: true };

describe("an endpoint", () => {
  test.each([
    ["198.51.100.7:41641", "public"],
    ["[2001:db8::7]:41641", "public"],
    ["[3fff::7]:41641", "public"],
    ["10.1.2.3:41641", "local"],
    ["172.16.0.1:41641", "local"],
    ["172.31.255.1:41641", "local"],
    ["172.32.0.1:41641", "public"],
    ["172.15.0.1:41641", "public"],
    ["192.168.7.3:41641", "local"],
    ["192.169.7.3:41641", "public"],
    ["169.254.1.1:41641", "local"],
    ["127.0.0.1:41641", "local"],
    ["100.64.0.1:41641", "carrier"],
    ["100.127.255.1:41641", "carrier"],
    ["100.128.0.1:41641", "public"],
    ["[fd12:3456::1]:41641", "local"],
    ["[fe80::1]:41641", "local"],
    ["[::1]:41641", "local"],
  ])("%s is %s", (endpoint, kind) => {
    expect(kindOf(endpoint)).toBe(kind);
  });

  it("has an address without port and brackets", () => {
    expect(hostOf("198.51.100.7:41641")).toBe("198.51.100.7");
    expect(hostOf("[2001:db8::7]:41641")).toBe("2001:db8::7");
  });

  it("is listed with public ones first", () => {
    const sorted = sortedEndpoints(["192.168.7.3:1", "100.64.0.1:1", "198.51.100.7:1"]);
    expect(sorted.map(({ kind }) => kind)).toEqual(["public", "carrier", "local"]);
  });
});

describe("two devices are in the same network", () => {
  const mine = ["198.51.100.7:41641", "192.168.7.3:41641", "172.17.0.1:41641"];
  test.each([
    ["with the same public address and neighbouring local ones", ["198.51.100.7:2", "192.168.7.9:2"], true],
    ["not without a local address nearby", ["198.51.100.7:2", "192.168.8.9:2"], false],
    ["not by local addresses alone", ["203.0.113.5:2", "192.168.7.9:2"], false],
    ["not by the same bridge address", ["198.51.100.7:2", "172.17.0.1:2"], false],
    ["not by a carrier's address", ["100.64.0.1:2", "192.168.7.9:2"], false],
    ["not without endpoints", [], false],
  ])("%s", (_, theirs, same) => {
    expect(sameNetwork(mine, theirs)).toBe(same);
    expect(sameNetwork(theirs, mine)).toBe(same);
  });
});

describe("a direct connection", () => {
  const lan = { endpoints: ["198.51.100.7:1", "192.168.7.3:1"] };
  const lanToo = { endpoints: ["198.51.100.7:2", "192.168.7.4:2"] };
  test.each([
    ["easy and easy", host(easy), host(easy), "likely", "easy", "both"],
    ["hard and hard", host(hard), host(hard), "unlikely", "hardBoth", "both"],
    ["hard and easy", host(hard), host(easy), "unknown", "hardOne", "this"],
    ["easy and hard", host(easy), host(hard), "unknown", "hardOne", "peer"],
    [
      "hard and hard with a mapped port",
      host({ ...hard, portMapped: true }),
      host(hard),
      "likely",
      "portMapped",
      "this",
    ],
    ["hard and mapped", host(hard), host({ ...hard, portMapped: true }), "likely", "portMapped", "peer"],
    [
      "hard with port mapping that is only offered",
      host({ ...hard, portMapping: ["upnp"] }),
      host(hard),
      "unlikely",
      "hardBoth",
      "both",
    ],
    ["hard and hard with IPv6", host({ ...hard, ipv6: true }), host({ ...hard, ipv6: true }), "likely", "ipv6", "both"],
    ["IPv6 on one side only", host({ ...hard, ipv6: true }), host(hard), "unlikely", "hardBoth", "both"],
    ["hard and hard in one network", host(hard, lan), host(hard, lanToo), "likely", "lan", "both"],
    ["UDP blocked here", host({ ...easy, udp: false }), host(easy), "unlikely", "udp", "this"],
    [
      "UDP blocked there, IPv6 on both",
      host({ ...easy, ipv6: true }),
      host({ udp: false, ipv6: true }),
      "unlikely",
      "udp",
      "peer",
    ],
    ["UDP blocked on both", host({ udp: false }), host({ udp: false }), "unlikely", "udp", "both"],
    [
      "a mapped port and UDP blocked",
      host({ ...easy, portMapped: true }),
      host({ udp: false }),
      "unlikely",
      "udp",
      "peer",
    ],
    ["UDP blocked here, nothing known there", host({ udp: false }), undefined, "unlikely", "udp", "this"],
    ["nothing reported there", host(easy), silent, "unknown", "unreported", "peer"],
    ["nothing reported here", silent, host(easy), "unknown", "unreported", "this"],
    ["nothing known", undefined, undefined, "unknown", "unreported", "both"],
    [
      "a mapped port, nothing reported there",
      host({ ...easy, portMapped: true }),
      silent,
      "unknown",
      "unreported",
      "peer",
    ],
    ["the kind of NAT unknown", host(easy), host({ udp: true }), "unknown", "unreported", "peer"],
  ] as const)("%s", (_, mine, theirs, chance, why, who) => {
    expect(directBetween(mine, theirs)).toEqual({ chance, why, who });
  });
});

const node = (over: Partial<Node>): Node =>
  ({
    id: "1",
    givenName: "n",
    tags: [],
    user: { id: "1", name: "ana" },
    online: true,
    expired: false,
    availableRoutes: [],
    approvedRoutes: [],
    ...over,
  }) as Node;

describe("findings", () => {
  const kinds = (n: Node, h: NodeHost) => findingsOf(n, h).map(({ kind }) => kind);
  const far = [{ region: { id: 902, code: "fra", name: "Frankfurt" }, milliseconds: 181 }];
  test.each([
    ["a healthy device", node({}), host(easy), ["fine"]],
    ["one that never reported", node({}), silent, ["unreported"]],
    ["one that never reported and is offline", node({ online: false }), silent, ["offline", "unreported"]],
    ["blocked UDP, which hides the NAT", node({}), host({ udp: false, mappingVaries: true }), ["udp"]],
    ["a hard NAT", node({}), host(hard), ["hardNat"]],
    ["a hard NAT with a mapped port", node({}), host({ ...hard, portMapped: true }), ["fine"]],
    ["no relay", node({}), host(easy, { relay: null }), ["noRelay"]],
    ["a relay that is gone", node({}), host(easy, { relay: { id: 7, code: "", name: "" } }), ["unknownRelay"]],
    ["a far relay", node({}), host(easy, { latencies: far }), ["farRelay"]],
    ["an expired node", node({ expired: true, online: false }), host(easy), ["expired", "offline"]],
  ])("of %s", (_, n, h, expected) => {
    expect(kinds(n, h)).toEqual(expected);
  });
});

describe("visible peers", () => {
  const principal = (kind: string, name: string, id = ""): AccessPrincipal => ({
    kind,
    name,
    id,
    nodes: 1,
    online: 1,
    expired: 0,
  });
  const rule = (line: number, via: string[] = []): AccessRule => ({
    line,
    draftLine: line,
    list: "acls",
    comment: "",
    from: [],
    to: [],
    via,
    change: "",
  });
  const cell = (from: number, to: number, of: number, shares: [rule: number, pairs: number][]): AccessCell => ({
    from,
    to,
    ports: ["port 22"],
    pairs: of,
    of,
    own: false,
    lost: [],
    gained: [],
    lostPairs: 0,
    gainedPairs: 0,
    changedPairs: 0,
    rules: shares.map(([index, pairs]) => ({ rule: index, before: pairs, after: pairs })),
  });
  const map = (over: Partial<AccessMap>): AccessMap => ({
    from: [],
    to: [],
    moreFrom: 0,
    moreTo: 0,
    moreCells: 0,
    cells: [],
    rules: [],
    ...over,
  });
  const me = node({ id: "1", givenName: "me" });
  const own = principal("node", "me", "1");
  const web1 = node({ id: "2", givenName: "web-1", tags: ["tag:web", "tag:prod"] });
  const web2 = node({ id: "3", givenName: "web-2", tags: ["tag:web"] });
  const bob = node({ id: "4", givenName: "laptop", user: { id: "2", name: "bob" } as Node["user"] });
  const gone = node({ id: "5", givenName: "old", tags: ["tag:web"], expired: true });
  const all = [me, web1, web2, bob, gone];
  const shown = (found: ReturnType<typeof visiblePeers>) =>
    Object.fromEntries(found.peers.map((peer) => [peer.node.givenName, peer.reasons]));

  it("follow from rules for whole users and tags, in either direction", () => {
    const out = map({
      from: [own],
      to: [principal("tag", "tag:web"), principal("tag", "tag:prod"), principal("user", "bob", "2")],
      cells: [cell(0, 0, 2, [[0, 2]]), cell(0, 1, 1, [[0, 1]])],
      rules: [rule(7)],
    });
    const into = map({
      from: [principal("tag", "tag:web"), principal("tag", "tag:prod"), principal("user", "bob", "2")],
      to: [own],
      cells: [cell(2, 0, 1, [[0, 1]])],
      rules: [rule(9)],
    });
    const found = visiblePeers(me, all, { out, in: into });
    expect(found.open).toEqual([]);
    expect(shown(found)).toEqual({
      "web-1": [{ way: "out", lines: [7] }],
      "web-2": [{ way: "out", lines: [7] }],
      laptop: [{ way: "in", lines: [9] }],
    });
  });

  const partial = map({
    from: [own],
    to: [principal("tag", "tag:web"), principal("tag", "tag:prod"), principal("user", "bob", "2")],
    cells: [cell(0, 0, 2, [[0, 1]]), cell(0, 1, 1, [[0, 1]])],
    rules: [rule(7)],
  });

  it("are asked about one by one if a rule applies only to some nodes of a tag", () => {
    const found = visiblePeers(me, all, { out: partial, in: map({ to: [own] }) });
    expect(found.open).toEqual(["3"]);
    expect(found.peers.map(({ node: { id }, partial }) => [id, partial])).toEqual([["2", true]]);
    const exact = {
      out: map({
        from: [own],
        to: [principal("node", "web-1", "2"), principal("node", "web-2", "3")],
        cells: [cell(0, 0, 1, [[0, 1]])],
        rules: [rule(7)],
      }),
      in: map({ to: [own] }),
    };
    const answered = visiblePeers(me, all, { out: partial, in: map({ to: [own] }) }, [exact]);
    expect(answered).toEqual({
      peers: [{ node: web1, reasons: [{ way: "out", lines: [7] }], partial: false }],
      open: [],
    });
  });

  it("are asked about one by one if the map does not list them", () => {
    const cut = map({ from: [own], to: [principal("tag", "tag:web"), principal("tag", "tag:prod")], moreTo: 1 });
    expect(visiblePeers(me, all, { out: cut, in: map({ to: [own] }) }).open).toEqual(["4"]);
  });

  it("include routers of networks, unless the rule is for other routers", () => {
    const route = "10.20.0.0/16";
    const router = (id: string, tag: string) =>
      node({ id, givenName: tag, tags: [tag], availableRoutes: [route], approvedRoutes: [route] });
    const exit = node({
      id: "8",
      givenName: "exit",
      tags: ["tag:c"],
      availableRoutes: ["0.0.0.0/0", "::/0"],
      approvedRoutes: ["0.0.0.0/0", "::/0"],
    });
    const waiting = node({ id: "9", givenName: "waiting", tags: ["tag:d"], availableRoutes: [route] });
    const out = map({
      from: [own],
      to: [principal("route", route), principal("internet", "autogroup:internet")],
      cells: [cell(0, 0, 1, [[0, 1]]), cell(0, 1, 1, [[1, 1]])],
      rules: [rule(7, ["tag:a"]), rule(8)],
    });
    const nodes = [me, router("6", "tag:a"), router("7", "tag:b"), exit, waiting];
    expect(shown(visiblePeers(me, nodes, { out, in: map({ to: [own] }) }))).toEqual({
      "tag:a": [{ way: "out", lines: [7], route }],
      exit: [{ way: "out", lines: [8], route: "" }],
    });
  });

  it("need no rule without a policy", () => {
    const everyone = [principal("tag", "tag:web"), principal("tag", "tag:prod"), principal("user", "bob", "2")];
    const out = map({ from: [own], to: everyone, cells: [cell(0, 2, 1, [[0, 1]])], rules: [rule(0)] });
    expect(shown(visiblePeers(me, all, { out, in: map({ from: everyone, to: [own] }) }))).toEqual({
      laptop: [{ way: "out", lines: [] }],
    });
  });
});
