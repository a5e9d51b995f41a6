import { describe, expect, test } from "vitest";
import type { AccessMap, Node } from "@/api";
import { asks } from "./actions";
import { callsOf, dangersOf, lossOf, type RouteRow, routeRows } from "./facts";
import { usersOf } from "./losers";
import { lossWords } from "./Question";
import { reasons, turnedWords } from "./turn";

const node = (id: string, available: string[], approved = available, serving = approved) =>
  ({
    id,
    givenName: `gw-${id}`,
    availableRoutes: available,
    approvedRoutes: approved,
    subnetRoutes: serving,
    online: true,
    expired: false,
    tags: ["tag:router"],
  }) as unknown as Node;

const rows = routeRows([
  node("1", ["10.0.0.0/8"]),
  node("2", ["10.20.0.0/16"], []),
  node("3", ["10.20.0.0/16"], ["10.20.0.0/16"], []),
  node("4", ["0.0.0.0/0", "::/0"], []),
  node("5", []),
  node("6", ["192.168.7.0/24", "192.168.0.0/16"]),
  node("7", ["192.168.0.0/16"], ["192.168.0.0/16"], []),
  node("8", ["0.0.0.0/0", "::/0"]),
]);
const of = (id: string) => rows.find((row) => row.id.startsWith(id)) as RouteRow;
const one = (id: string, on: boolean, own = "") => ({ on, rows: [of(id)], all: rows, own });

test("every router of every network is a row, and an exit node is one", () =>
  expect(rows.slice(0, 4).map((row) => row.id)).toEqual([
    "1 10.0.0.0/8",
    "2 10.20.0.0/16",
    "3 10.20.0.0/16",
    "4 0.0.0.0/0",
  ]));

test("networks that share addresses are told of each other, the internet of none", () => {
  expect(of("1").overlaps).toEqual(["10.20.0.0/16"]);
  expect(of("2").overlaps).toEqual(["10.0.0.0/8"]);
  expect(of("4").overlaps).toEqual([]);
});

describe("a route is asked about before it is approved", () => {
  test("when it overlaps one in use", () => {
    expect(dangersOf(of("2"), rows, "").inUse).toEqual(["10.0.0.0/8"]);
    expect(dangersOf(of("1"), rows, "").inUse).toEqual([]);
    expect(asks(one("2", true))).toBe(true);
  });
  test("when it overlaps one that is approved with it", () => {
    const waiting = routeRows([node("1", ["10.0.0.0/8", "10.20.0.0/16"], [])]);
    expect(waiting.map((row) => dangersOf(row, waiting, "", waiting).inUse)).toEqual([
      ["10.20.0.0/16"],
      ["10.0.0.0/8"],
    ]);
  });
  test("when it holds the person's own address", () => {
    expect(dangersOf(of("2"), rows, "10.20.3.4").own).toBe(true);
    expect(dangersOf(of("2"), rows, "192.168.1.2").own).toBe(false);
    expect(dangersOf(of("4"), rows, "192.168.1.2").own).toBe(false);
  });
  test("and is not when it bends nothing", () => expect(asks(one("4", true, "10.1.1.1"))).toBe(false));
  test("and several are listed whatever they are", () =>
    expect(asks({ on: true, rows: [of("2"), of("4")], all: rows, own: "" })).toBe(true));
});

describe("a route that is disabled", () => {
  test("is taken over by the others of its network, without a question", () => {
    expect(asks(one("6 192.168.0.0/16", false))).toBe(false);
    expect(lossOf(of("6 192.168.0.0/16"), rows, [])?.next.map(({ id }) => id)).toEqual(["7"]);
    expect(turnedWords([of("6 192.168.0.0/16")], false, rows)).toBe(
      "192.168.0.0/16 disabled on gw-6. gw-7 takes over.",
    );
  });
  test("is lost when the others go with it", () => {
    const going = [of("6 192.168.0.0/16"), of("7")];
    expect(lossOf(of("6 192.168.0.0/16"), rows, going)).toMatchObject({ next: [], cuts: true });
  });
  test("leaves its traffic to a greater network in service", () =>
    expect(lossWords(of("6 192.168.7.0/24"), [of("6 192.168.7.0/24")], rows, undefined)).toBe(
      "No other router serves 192.168.7.0/24. Its traffic will use 192.168.0.0/16 through gw-6 instead.",
    ));
  test("takes nothing from anybody while another serves", () => {
    expect(asks(one("7", false))).toBe(false);
    expect(lossOf(of("7"), rows, [])).toBeNull();
  });
  test("names those who lose it", () => {
    const lost = (names: string[], complete = true) => lossWords(of("1"), [of("1")], rows, { names, complete });
    expect(lost(["ana", "bo"])).toContain("2 nodes lose access immediately: ana, bo.");
    expect(lost(["a", "b", "c", "d", "e", "f", "g"])).toContain(
      "7 nodes lose access immediately: a, b, c, d, e and 2 more.",
    );
    expect(lost(["a", "b"], false)).toContain("At least 2 nodes");
    expect(lost([])).toContain("doesn't let any node use this route");
    expect(lost([], false)).toContain("Every node that can use this route");
  });
  test("to the internet says what else can be chosen", () => {
    const words = (id: string) => lossWords(of(id), [of(id)], rows, { names: ["ana"], complete: true });
    expect(words("8")).toMatch(/1 node can use this exit node: ana\..* No other exit node is active\./);
  });
});

test("those who may use a network are the nodes that reach it, without its router, and not by another", () => {
  const principal = (kind: string, id: string, name: string) => ({ kind, id, name, nodes: 1, online: 1, expired: 0 });
  const map = {
    from: [
      principal("node", "1", "gw-1"),
      principal("node", "9", "ana"),
      principal("route", "", "10.9.0.0/16"),
      principal("node", "10", "bo"),
      principal("node", "11", "cy"),
    ],
    to: [principal("route", "", "10.0.0.0/8"), principal("route", "", "10.7.0.0/16")],
    cells: [
      { from: 0, to: 0, rules: [{ rule: 0 }] },
      { from: 1, to: 0, rules: [{ rule: 0 }] },
      { from: 2, to: 0, rules: [{ rule: 0 }] },
      { from: 3, to: 0, rules: [{ rule: 1 }] },
      { from: 4, to: 0, rules: [{ rule: 2 }] },
      { from: 1, to: 1, rules: [{ rule: 0 }] },
    ],
    rules: [{ via: [] }, { via: ["tag:router"] }, { via: ["tag:other"] }],
    moreFrom: 0,
    moreTo: 0,
    moreCells: 0,
  } as unknown as AccessMap;
  expect(usersOf(map, "10.0.0.0/8", of("1").node)).toEqual({ names: ["ana", "bo"], complete: true });
  expect(usersOf({ ...map, moreFrom: 3 }, "10.0.0.0/8", of("1").node).complete).toBe(false);
});

test("routes of one node are one call", () => {
  const both = rows.filter((row) => row.node.id === "6");
  expect(callsOf([...both, of("7")], false)).toEqual([
    { method: "post", path: "/api/v1/node/6/approve_routes", body: { routes: [] } },
    { method: "post", path: "/api/v1/node/7/approve_routes", body: { routes: [] } },
  ]);
});

test("each route that failed is named with why", () =>
  expect(
    reasons([
      { row: of("1"), error: new Error("away") },
      { row: of("4"), error: new Error("no") },
    ]),
  ).toBe("10.0.0.0/8, gw-1: away · Exit node, gw-4: no"));
