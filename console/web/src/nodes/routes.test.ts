import { expect, test } from "vitest";
import type { Node } from "@/api";
import { routesLostWith, routesOf, withRoute } from "./routes";

const node = (fields: Partial<Node>): Node =>
  ({
    id: "1",
    online: true,
    expired: false,
    availableRoutes: [],
    approvedRoutes: [],
    subnetRoutes: [],
    ...fields,
  }) as Node;

test("what waits comes first, and an exit node is one thing", () => {
  const router = node({
    availableRoutes: ["10.1.0.0/16", "0.0.0.0/0", "::/0", "10.9.0.0/16"],
    approvedRoutes: ["10.1.0.0/16", "10.2.0.0/16"],
    subnetRoutes: ["10.1.0.0/16"],
  });
  expect(routesOf(router, []).map(({ prefixes, state }) => [prefixes.join(), state])).toEqual([
    ["10.9.0.0/16", "waiting"],
    ["0.0.0.0/0,::/0", "waiting"],
    ["10.1.0.0/16", "serving"],
    ["10.2.0.0/16", "unoffered"],
  ]);
});

test("a router beside another that serves is on standby, an absent one is away", () => {
  const prefix = ["10.1.0.0/16"];
  const second = node({ availableRoutes: prefix, approvedRoutes: prefix });
  const first = node({ id: "2", availableRoutes: prefix, approvedRoutes: prefix, subnetRoutes: prefix });
  const waiting = node({ id: "3", availableRoutes: prefix });
  expect(routesOf(second, [first, second, waiting])).toMatchObject([{ state: "standby", others: [{ id: "2" }] }]);
  expect(routesOf({ ...second, online: false }, [])).toMatchObject([{ state: "offline", others: [] }]);
});

test("a switch changes its own route alone", () => {
  expect(withRoute(["10.1.0.0/16"], ["0.0.0.0/0", "::/0"], true)).toEqual(["10.1.0.0/16", "0.0.0.0/0", "::/0"]);
  expect(withRoute(["10.1.0.0/16", "0.0.0.0/0", "::/0"], ["0.0.0.0/0", "::/0"], false)).toEqual(["10.1.0.0/16"]);
});

test("of routes that go, those with another router are told apart", () => {
  const both = ["10.20.0.0/16", "10.31.0.0/16", "10.40.0.0/16"];
  const going = node({
    availableRoutes: [...both.slice(0, 2), "0.0.0.0/0", "::/0"],
    approvedRoutes: [...both, "::/0"],
  });
  const other = node({ id: "2", availableRoutes: both, approvedRoutes: ["10.20.0.0/16"] });
  expect(routesLostWith([going], [going, other])).toEqual([
    { prefix: "10.20.0.0/16", exit: false, other },
    { prefix: "10.31.0.0/16", exit: false, other: undefined },
    { prefix: "", exit: true },
  ]);
  expect(routesLostWith([going, other], [going, other]).map((route) => route.other)).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect(routesLostWith([node({ availableRoutes: both })], [])).toEqual([]);
});
