import { describe, expect, test } from "vitest";
import type { Node } from "@/api";
import { matches, parse } from "@/filter";
import {
  approverOf,
  autoApprovers,
  byNetwork,
  dangersOf,
  repeatedIn,
  routeFilter,
  routeFilterFields,
  routeRows,
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

test("every router of every network is a row, and an exit node is one", () =>
  expect(rows.map((row) => row.id)).toEqual(["1 10.0.0.0/8", "2 10.20.0.0/16", "3 10.20.0.0/16", "4 0.0.0.0/0"]));

test("networks that share addresses are told of each other, the internet of none", () => {
  expect(of("1").overlaps).toEqual(["10.20.0.0/16"]);
  expect(of("2").overlaps).toEqual(["10.0.0.0/8"]);
  expect(of("4").overlaps).toEqual([]);
});

test("routers of a network that waits stay together", () => {
  const { waiting, rest } = splitWaiting([...rows].sort(byNetwork));
  expect(waiting.map((row) => row.node.id)).toEqual(["4", "2", "3"]);
  expect(rest.map((row) => row.node.id)).toEqual(["1"]);
});

test("a network is named loudly by its first router alone", () =>
  expect([...repeatedIn(rows)]).toEqual(["3 10.20.0.0/16"]));

describe("a route is asked about", () => {
  test("when it overlaps one in use", () => {
    expect(dangersOf(of("2"), rows, "").inUse).toEqual(["10.0.0.0/8"]);
    expect(dangersOf(of("1"), rows, "").inUse).toEqual([]);
  });
  test("when it holds the person's own address", () => {
    expect(dangersOf(of("2"), rows, "10.20.3.4").own).toBe(true);
    expect(dangersOf(of("2"), rows, "192.168.1.2").own).toBe(false);
    expect(dangersOf(of("4"), rows, "192.168.1.2").own).toBe(false);
  });
});

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
