import { describe, expect, it } from "vitest";
import type { Node, PolicyEffect } from "@/api";
import { addressIn, firstPort } from "@/policy/tests";
import { shift } from "./effect.fixture";
import {
  failureWords,
  principalWords,
  type RouteShift,
  removalOf,
  routeTestOf,
  type ShellShift,
  saveWords,
  shellTestOf,
  testOf,
} from "./effectWords";

const effect = (part: Partial<PolicyEffect>): PolicyEffect => ({
  lost: 0,
  gained: 0,
  changed: 0,
  unchanged: 0,
  losing: 0,
  gaining: 0,
  losers: 0,
  losersOnline: 0,
  shifts: [],
  shells: [],
  routes: [],
  moreShifts: 0,
  moreShells: 0,
  moreRoutes: 0,
  tests: [],
  guards: [],
  notes: [],
  truncated: false,
  ...part,
});

describe("what an effect takes away", () => {
  it("is nothing when all is gained", () => {
    const gain = effect({ gained: 84, gaining: 84, shifts: [shift({ pairs: 84, gained: ["port 22"] })] });
    expect(removalOf(gain).any).toBe(false);
    expect(saveWords(gain)).toBe("Save policy");
  });

  it("counts pairs that keep other ports too", () => {
    const loss = effect({ lost: 90, changed: 6, losing: 96, shifts: [shift({ pairs: 96, lost: ["port 5432"] })] });
    expect(removalOf(loss)).toEqual({ any: true, pairs: 96, more: false });
    expect(saveWords(loss)).toBe("Save and remove access for 96 pairs");
    expect(saveWords(effect({ lost: 1, losing: 1 }))).toBe("Save and remove access for 1 pair");
  });

  it("is shells or networks alone", () => {
    const shells = effect({ shells: [{ ...shift({}), lost: [{ name: "root", check: false }], gained: [] }] });
    expect(saveWords(shells)).toBe("Save and remove access");
  });

  it("is taken for granted where not all was listed or looked at", () => {
    expect(removalOf(effect({ moreShells: 3 })).any).toBe(true);
    expect(removalOf(effect({ truncated: true })).any).toBe(true);
  });

  it("is not assumed for changes that are counted but not listed", () => {
    expect(removalOf(effect({ moreShifts: 3, gained: 9, gaining: 9 })).any).toBe(false);
  });
});

it("names two and counts the rest", () => {
  expect(principalWords({ names: ["ana"], count: 1 })).toBe("ana");
  expect(principalWords({ names: ["ana", "bo", "cy"], count: 3 })).toBe("ana, bo, cy");
  expect(principalWords({ names: ["tag:a, tag:b", "tag:c"], count: 2 })).toBe("tag:a tag:b, tag:c");
  expect(principalWords({ names: ["ana", "bo", "cy", "di"], count: 1400 })).toBe("ana, bo +1,398");
});

it.each([
  [["port 22"], { proto: "tcp", number: 22 }],
  [["ports 80, 443"], { proto: "tcp", number: 80 }],
  [["ICMP", "UDP ports 53, 60000-61000"], { proto: "udp", number: 53 }],
  [["all ports"], { proto: "tcp", number: 22 }],
  [["ICMP"], null],
])("finds a port in %j", (said, port) => expect(firstPort(said)).toEqual(port));

describe("a test made of a change", () => {
  const ana = { tags: [], user: { name: "ana" } } as unknown as Node;
  const db = { tags: ["tag:db", "tag:prod"] } as unknown as Node;

  it("denies what was lost and accepts what was gained", () => {
    expect(testOf(shift({ lost: ["port 5432"] }), ana, db)).toEqual({ src: "ana@", deny: ["tag:db:5432"] });
    expect(testOf(shift({ gained: ["UDP port 53"] }), db, ana)).toEqual({
      src: "tag:db",
      proto: "udp",
      accept: ["ana@:53"],
    });
  });

  it("names a node by the tag of which the rules speak", () => {
    const rules = '{"src": ["ana"], "dst": ["tag:prod:5432"]}';
    expect(testOf(shift({ gained: ["port 5432"] }), ana, db, rules)?.accept).toEqual(["tag:prod:5432"]);
    expect(testOf(shift({ gained: ["port 5432"] }), ana, db, rules.replace("prod", "production"))?.accept).toEqual([
      "tag:db:5432",
    ]);
  });

  it("speaks of one address of a network", () => {
    const route = (part: Partial<RouteShift>): RouteShift => ({
      ...shift({}),
      through: [],
      prefix: "10.20.0.0/16",
      ...part,
    });
    expect(routeTestOf(route({ gained: ["port 443"] }))).toEqual({ src: "ana@", accept: ["10.20.0.1:443"] });
    expect(routeTestOf(route({ prefix: "0.0.0.0/0", lost: ["all ports"] }))).toEqual({
      src: "ana@",
      deny: ["1.1.1.1:443"],
    });
    const tagged = { names: ["tag:a, tag:b"], count: 1 };
    expect(routeTestOf(route({ prefix: "fd00:1::/64", from: tagged, gained: ["all ports"] }))).toEqual({
      src: "tag:a",
      accept: ["[fd00:1::1]:22"],
    });
    expect(["10.1.2.3/32", "10.1.2.4/31", "fd00::1/128"].map(addressIn)).toEqual(["10.1.2.3", "10.1.2.5", "fd00::1"]);
  });

  it("says for SSH which accounts are accepted, need approval or are refused", () => {
    const shell = (part: Partial<ShellShift>): ShellShift => ({ ...shift({}), lost: [], gained: [], ...part });
    const user = (name: string, check = false) => ({ name, check });
    expect(shellTestOf(shell({ lost: [user("root")], gained: [user("root", true), user("pg")] }), ana, db)).toEqual({
      src: "ana@",
      dst: ["tag:db"],
      accept: ["pg"],
      check: ["root"],
    });
    expect(shellTestOf(shell({ own: true, lost: [user("autogroup:nonroot")] }), ana, ana)).toEqual({
      src: "ana@",
      dst: ["autogroup:self"],
      deny: ["nobody"],
    });
  });

  it("is not made of nodes that are gone, nor of what has no port", () => {
    expect(testOf(shift({ lost: ["port 1"] }), undefined, db)).toBeNull();
    expect(testOf(shift({ lost: ["ICMP"] }), ana, db)).toBeNull();
  });
});

it("does not repeat where a test stands", () => {
  expect(failureWords("test on line 38: bo should reach x and does not")).toBe("bo should reach x and does not");
});
