import { expect, test } from "vitest";
import type { Node } from "@/api";
import { matches, parse } from "@/filter";
import { nodeFilter, nodeFilterFields } from "@/nodes";
import { offers } from "./FilterMenu";

const node = (fields: object) =>
  ({
    givenName: "",
    hostname: "",
    ipAddresses: [],
    tags: [],
    os: "linux",
    clientVersion: "1.90.4-t1",
    availableRoutes: [],
    user: { name: "ana" },
    ...fields,
  }) as unknown as Node;

const nodes = [
  node({ id: "1", availableRoutes: ["10.2.0.0/16", "0.0.0.0/0"] }),
  node({ id: "2", tags: ["tag:db"], os: "windows", clientVersion: "1.88.0" }),
  node({ id: "3", user: { name: "Bo Li" }, preAuthKey: { id: "7", key: "flp_b81K_***" } }),
  node({ id: "4", user: { name: 'no, "way"' } }),
];
const { more, words } = offers(nodes, ["fra", "", "fra"]);
const terms = more.flatMap(([, offered]) => offered);

test("the menu offers what the nodes have, each once", () =>
  expect(terms).toEqual([
    "tag:db",
    "user:ana",
    'user:"Bo Li"',
    "os:linux",
    "os:windows",
    "version:<1.90.4",
    "version:1.90.4",
    "version:1.88.0",
    "relay:fra",
    "route:10.2.0.0/16",
    "key:b81K",
  ]));

test("what is older than the newest and systems have a wording", () => {
  expect(words["version:<1.90.4"]).toBe("Outdated");
  expect(words["os:windows"]).toBe("Windows");
});

test.each(terms)("%s finds some and not all", (term) => {
  const hosts = new Map([["1", { relay: { code: "fra" } }]]) as never;
  const found = nodes.filter((each) => matches(each, parse(term, nodeFilterFields), nodeFilter(0, hosts)));
  expect(found.length).toBeGreaterThan(0);
  expect(found.length).toBeLessThan(nodes.length);
});
