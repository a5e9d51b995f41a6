import { describe, expect, test } from "vitest";
import type { AccessMap, Node } from "@/api";
import { matches, parse } from "@/filter";
import { byNetwork, routeRows } from "@/routes/facts";
import {
  approverOf,
  autoApprovers,
  exitUsers,
  repeatedIn,
  routeFilter,
  routeFilterFields,
  splitWaiting,
} from "./facts";

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
]);
const of = (id: string) => rows.find((row) => row.node.id === id) as (typeof rows)[number];

test("routers of a network that waits stay together", () => {
  const { waiting, rest } = splitWaiting([...rows].sort(byNetwork));
  expect(waiting.map((row) => row.node.id)).toEqual(["4", "2", "3"]);
  expect(rest.map((row) => row.node.id)).toEqual(["1"]);
});

test("a network is named loudly by its first router alone", () =>
  expect([...repeatedIn(rows)]).toEqual(["3 10.20.0.0/16"]));

test("the policy's approvers are found by the network that holds a route", () => {
  const by = autoApprovers(`{"autoApprovers": {
    "routes": {"10.20.0.0/14": ["tag:router"], /* none */ "192.168.0.0/16": []},
    "exitNode": ["group:ops"],
  }}`);
  expect(approverOf(of("2"), by)).toEqual({ prefix: "10.20.0.0/14", by: ["tag:router"] });
  expect(approverOf(of("1"), by)).toBeNull();
  expect(approverOf(of("4"), by)?.by).toEqual(["group:ops"]);
  expect(autoApprovers("")).toEqual({ routes: [], exitNode: [] });
  expect(autoApprovers('{"autoApprovers": {"routes": 3}}').routes).toEqual([]);
});

test.each([
  ["10.20", ["2", "3"]],
  ["10.20.1.1", ["1", "2", "3"]],
  ["is:waiting", ["2", "4"]],
  ["is:overlapping -is:serving", ["2", "3"]],
  ["gw-4", ["4"]],
  ["tag:router node:gw-1", ["1"]],
])("the filter %j", (line, wanted) =>
  expect(
    rows.filter((row) => matches(row, parse(line, routeFilterFields), routeFilter)).map((row) => row.node.id),
  ).toEqual(wanted),
);

describe("who may use an exit node", () => {
  const exit = (id: string, ...tags: string[]) => ({ id, tags }) as unknown as Node;
  const cell = (from: number, ...rules: number[]) => ({
    from,
    to: 0,
    pairs: 1,
    rules: rules.map((rule) => ({ rule })),
  });
  const map = {
    from: ["1", "2", "3"].map((id) => ({ kind: "node", id, name: `node-${id}` })),
    to: [{ name: "autogroup:internet" }],
    cells: [cell(0, 0), cell(1, 1), cell(2, 0, 1)],
    rules: [{ via: [] }, { via: ["tag:fra"] }],
    moreFrom: 0,
    moreTo: 0,
    moreCells: 0,
  } as unknown as AccessMap;
  test("are those whom a rule leads there, without itself", () =>
    expect(exitUsers(map, [exit("1", "tag:fra"), exit("9")])).toEqual(
      new Map([
        ["1", 2],
        ["9", 2],
      ]),
    ));
  test("are not known when some nodes are left out", () =>
    expect(exitUsers({ ...map, moreFrom: 1 }, [exit("9")])).toBeUndefined());
});
