import { describe, expect, it } from "vitest";
import type { AccessRow } from "@/access";
import type { AccessCell, AccessRule, Node } from "@/api";
import { opens, rowFilter } from "./columns";
import { usualPorts } from "./FilterMenu";
import { edgeWidth, itemHeight, layOutFlow, ruleId } from "./flow";
import { destination, policyName, suggestions, testOfRow } from "./names";
import { withoutIdle } from "./useMap";

const rule = (line: number, over: Partial<AccessRule> = {}): AccessRule => ({
  line,
  draftLine: line,
  list: "acls",
  comment: "",
  from: [],
  to: [],
  via: [],
  change: "",
  ...over,
});
const principal = (name: string, kind = "tag") => ({ kind, name, id: "", nodes: 1, online: 1, expired: 0 });
const cell = (over: Partial<AccessCell>) =>
  ({ from: 0, to: 0, ports: [], gained: [], lost: [], pairs: 1, of: 1, ...over }) as unknown as AccessCell;
const row = (from: string, to: string, ...rules: AccessRow["rules"]): AccessRow => ({
  id: `${from}>${to}`,
  from: principal(from),
  to: principal(to),
  cell: cell({ from: from.length, to: to.length, ports: ["ports 22, 8000-8100"] }),
  rules,
});

describe("the drawing", () => {
  const rows = [
    row("a", "x", { rule: rule(4), before: 3, after: 3 }),
    row(
      "bb",
      "x",
      { rule: rule(4), before: 1, after: 1 },
      { rule: rule(2, { change: "added", line: 0 }), before: 0, after: 9 },
    ),
    row("a", "yy", { rule: rule(7, { change: "removed" }), before: 5, after: 0 }),
  ];
  const flow = layOutFlow(rows, "");
  it("adds up what goes through a rule", () => {
    const edges = Object.fromEntries(flow.edges.map((edge) => [edge.id, [edge.pairs, edge.change]]));
    expect(edges["line4|to x"]).toEqual([4, ""]);
    expect(edges["from bb|line2"]).toEqual([9, "gained"]);
    expect(edges["from a|old7"]).toEqual([5, "lost"]);
  });
  it("puts rules in the order of the text and names in that of the map", () => {
    const column = (n: number) => flow.items.filter((item) => item.column === n).sort((a, b) => a.y - b.y);
    expect(column(1).map((item) => item.rule && ruleId(item.rule))).toEqual(["line2", "line4", "old7"]);
    expect(column(0).map((item) => item.id)).toEqual(["from a", "from bb"]);
  });
  it("keeps names of one column apart", () => {
    for (const a of flow.items)
      for (const b of flow.items)
        if (a !== b && a.column === b.column) expect(Math.abs(a.y - b.y)).toBeGreaterThanOrEqual(itemHeight);
  });
  it("keeps only the paths of a name", () => {
    const some = layOutFlow(rows, "from bb");
    expect(some.items.map((item) => item.id).sort()).toEqual(["from bb", "rule line2", "rule line4", "to x"]);
    expect(some.edges.find((edge) => edge.id === "line4|to x")?.pairs).toBe(1);
  });
  it("says how many rules it leaves out", () => {
    const many = Array.from({ length: 70 }, (_, i) =>
      row("a", `t${i}`, { rule: rule(i + 1), before: i, after: i + 1 }),
    );
    expect(layOutFlow(many, "").more).toBe(10);
  });
  it("draws more pairs thicker, within bounds", () => {
    expect(edgeWidth(1, 10_000)).toBeGreaterThan(1);
    expect(edgeWidth(100, 10_000)).toBeGreaterThan(edgeWidth(1, 10_000));
    expect(edgeWidth(10_000, 10_000)).toBe(10);
  });
});

describe("names for rules and tests", () => {
  const nodes = [
    { id: "1", givenName: "db-1", tags: ["tag:db"], ipAddresses: ["100.64.0.1"] },
    { id: "2", givenName: "ana-mbp", tags: [], user: { name: "ana" }, ipAddresses: ["100.64.0.2"] },
  ] as unknown as Node[];
  it.each([
    ["DB-1", "tag:db"],
    ["100.64.0.2", "ana"],
    ["group:ops", "group:ops"],
  ])("%s is %s", (end, want) => expect(policyName(end, nodes)).toBe(want));
  it("puts brackets around an address with colons", () => {
    expect(destination("fd00::1", "22", nodes)).toBe("[fd00::1]:22");
    expect(destination("db-1", "22", nodes)).toBe("tag:db:22");
  });
  it("suggests what begins with the word first", () => {
    const users = [{ name: "diana" }] as never;
    expect(suggestions("ana", [principal("tag:analytics"), principal("10.0.0.0/8", "route")], nodes, users)).toEqual([
      "tag:analytics",
      "ana-mbp",
      "diana",
    ]);
  });
});

describe("a test made of a row", () => {
  const nodes = [
    { id: "1", givenName: "db-1", tags: ["tag:prod", "tag:db"], ipAddresses: [] },
    { id: "2", givenName: "ana-mbp", tags: [], user: { name: "ana" }, ipAddresses: [] },
  ] as unknown as Node[];
  const use = { rule: rule(3, { from: ["ana"], to: [{ name: "tag:db", ports: ["port 5432"] }] }), before: 1, after: 1 };
  const of = (from: AccessRow["from"], to: AccessRow["to"], over: Partial<AccessCell> = {}) => ({
    id: "",
    from,
    to,
    cell: cell({ pairs: 1, of: 1, ports: ["port 5432"], ...over }),
    rules: [use],
  });
  const db = { ...principal("db-1", "node"), id: "1" };
  const ana = { ...principal("ana-mbp", "node"), id: "2" };
  it("names a node by the tag that the rule means", () =>
    expect(testOfRow(of(ana, db), nodes)).toEqual({ src: "ana", accept: ["tag:db:5432"] }));
  it("denies what the draft takes away", () =>
    expect(testOfRow(of(principal("ana", "user"), db, { pairs: 0, lost: ["UDP port 53"] }), nodes)).toEqual({
      src: "ana",
      proto: "udp",
      deny: ["tag:db:53"],
    }));
  it("speaks of one address of a network, and of own nodes", () => {
    expect(testOfRow(of(principal("tag:a"), principal("10.2.0.0/16", "route")), nodes)?.accept).toEqual([
      "10.2.0.1:5432",
    ]);
    expect(testOfRow(of(ana, ana, { own: true, ports: ["all ports"] }), nodes)?.accept).toEqual(["autogroup:self:22"]);
  });
  it("is not made of what holds for some alone, or has no port", () => {
    expect(testOfRow(of(principal("tag:a"), principal("tag:b"), { of: 2 }), nodes)).toBeNull();
    expect(testOfRow(of(ana, db, { ports: ["ICMP"] }), nodes)).toBeNull();
    expect(testOfRow(of(principal("other users", "others"), db), nodes)).toBeNull();
  });
});

describe("the filter", () => {
  it.each([
    ["22", true],
    ["8050", true],
    ["23", false],
  ])("port %s among ranges: %s", (port, want) => expect(opens(["ports 22, 8000-8100"], port)).toBe(want));
  it("knows all ports", () => expect(opens(["UDP all ports"], "53")).toBe(true));
  it("tells all ports from some", () =>
    expect([opens(["all ports"], "all"), opens(["ports 22, 80"], "all")]).toEqual([true, false]));
  it("offers the ports that most rows open, and no ends of ranges", () => {
    expect(usualPorts([row("a", "b"), row("c", "d")])).toEqual([22]);
  });
  it("looks for a name on one side", () => {
    expect(rowFilter.fields.from?.(row("tag:a", "tag:b"), "tag:a", undefined as never)).toBe(true);
    expect(rowFilter.fields.to?.(row("tag:a", "tag:b"), "tag:a", undefined as never)).toBe(false);
  });
});

it("leaves out routes that reach nothing, and keeps cells on their rows", () => {
  const map = {
    from: [principal("10.0.0.0/8", "route"), principal("tag:a"), principal("10.1.0.0/16", "route")],
    to: [principal("tag:b")],
    moreFrom: 0,
    moreTo: 0,
    moreCells: 0,
    rules: [],
    cells: [cell({ from: 2 })],
  };
  const left = withoutIdle(map);
  expect(left.from.map((p) => p.name)).toEqual(["tag:a", "10.1.0.0/16"]);
  expect(left.cells[0]?.from).toBe(1);
});
