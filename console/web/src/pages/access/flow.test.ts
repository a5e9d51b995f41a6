import { describe, expect, it } from "vitest";
import type { AccessRow } from "@/access";
import { type AccessCell, type AccessRule, ApiError, type Node } from "@/api";
import { opens, rowFilter } from "./columns";
import { usualPorts } from "./FilterMenu";
import { edgeWidth, itemHeight, layOutFlow, ruleId } from "./flow";
import { askable, askProblem, destination, nearest, policyName, suggestions, testOfRow } from "./names";
import { connectedFirst, withoutManyRoutes, withoutSecondNames } from "./tidyMap";
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
  it("puts the largest rules and names first", () => {
    const column = (n: number) => flow.items.filter((item) => item.column === n).sort((a, b) => a.y - b.y);
    expect(column(1).map((item) => item.rule && ruleId(item.rule))).toEqual(["line2", "old7", "line4"]);
    expect(column(0).map((item) => item.id)).toEqual(["from bb", "from a"]);
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
  it("draws the largest paths, and says how many there are", () => {
    const many = Array.from({ length: 70 }, (_, i) =>
      row("a", `t${i}`, { rule: rule(i + 1), before: i + 1, after: i + 1 }),
    );
    const some = layOutFlow(many, "", 40);
    expect([some.drawn, some.paths]).toEqual([40, 70]);
    expect(some.items.map((item) => item.id)).toContain("to t69");
    expect(some.items.map((item) => item.id)).not.toContain("to t29");
    expect(layOutFlow(many, "", 400).drawn).toBe(70);
  });
  it("draws what a draft changes before larger paths", () => {
    const many = Array.from({ length: 50 }, (_, i) => row("a", `t${i}`, { rule: rule(i + 1), before: 9, after: 9 }));
    const some = layOutFlow([...many, row("a", "new", { rule: rule(60), before: 0, after: 1 })], "", 40);
    expect(some.items.map((item) => item.id)).toContain("to new");
  });
  it("does not count the second tag of a node", () => {
    const metrics = rule(24, { from: ["tag:monitoring"], to: [{ name: "tag:prod", ports: ["port 9100"] }] });
    const use = (pairs: number) => ({ rule: metrics, before: pairs, after: pairs });
    const flow = layOutFlow(
      [
        row("tag:monitoring", "tag:prod", use(182)),
        row("tag:monitoring", "tag:web", use(169)),
        row("tag:prod", "tag:prod", use(182)),
        row("tag:prod", "tag:web", use(169)),
      ],
      "",
    );
    expect(flow.edges.map((edge) => [edge.id, edge.pairs])).toEqual([
      ["from tag:monitoring|line24", 182],
      ["line24|to tag:prod", 182],
    ]);
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
    const all = askable([principal("tag:analytics"), principal("10.0.0.0/8", "route")], nodes, users);
    expect(suggestions("ana", all)).toEqual([
      { value: "tag:analytics", note: "tag" },
      { value: "ana-mbp", note: "node" },
      { value: "diana", note: "user" },
    ]);
  });
  it("finds names that were misspelt, with or without their prefix", () => {
    const all = askable([principal("tag:web"), principal("group:ops", "group")], nodes, []);
    expect(nearest("tag:wbe-1", all)).toEqual([]);
    expect(nearest("webb", all)).toEqual(["tag:web"]);
    expect(nearest("group:opps", all)).toEqual(["group:ops"]);
    expect(nearest("ana-mpb", all)).toEqual(["ana-mbp"]);
  });
  it("says at which field a question went wrong, and what to ask instead", () => {
    const all = askable([principal("tag:web")], nodes, []);
    const failed = (status: number, detail: string) => new ApiError(status, "", detail, "");
    const asked = { from: "ana", to: "tag:wep" };
    expect(askProblem(asked, failed(404, "unknown: no node has tag:wep"), all)).toEqual({
      side: "to",
      text: "No node, user, group, tag or address is called tag:wep.",
      instead: ["tag:web"],
    });
    const network = askProblem({ from: "ana", to: "10.2.0.0/16" }, failed(404, '"10.2.0.0/16" is unknown'), all);
    expect([network.side, network.instead]).toEqual(["to", ["10.2.0.1"]]);
    expect(askProblem(asked, failed(400, "70000 is not a port"), all)).toEqual({
      side: null,
      text: "70000 is not a port.",
      instead: [],
    });
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

describe("rules that apply by another name", () => {
  const kept = (from: string[], to: string[], rows: [string, string][]) => {
    const use = { rule: rule(3, { from, to: to.map((name) => ({ name, ports: [] })) }), before: 1, after: 1 };
    const kinds: Record<string, string> = { g: "group", t: "tag", 1: "route" };
    const all = rows.map(([a, b]) => ({
      ...row(a, b, use),
      from: principal(a, kinds[a[0] ?? ""] ?? "user"),
      to: principal(b, kinds[b[0] ?? ""] ?? "user"),
    }));
    return withoutSecondNames(all).map((one) => one.id);
  };
  it("are kept where they mean everyone", () => {
    const rows: [string, string][] = [
      ["tag:a", "tag:b"],
      ["ana", "tag:c"],
    ];
    expect(kept(["*"], ["*"], rows)).toEqual(["tag:a>tag:b", "ana>tag:c"]);
    expect(kept(["autogroup:member"], ["tag:c"], rows)).toEqual(["ana>tag:c"]);
    expect(kept(["server"], ["100.64.0.7"], rows)).toHaveLength(2);
  });
  it("are kept for members of a group that is not on the map", () => {
    expect(kept(["group:ops"], ["tag:c"], [["ana", "tag:c"]])).toEqual(["ana>tag:c"]);
    const both: [string, string][] = [
      ["group:ops", "tag:c"],
      ["ana", "tag:c"],
    ];
    expect(kept(["group:ops"], ["tag:c"], both)).toEqual(["group:ops>tag:c"]);
    expect(kept(["ana@"], ["tag:c"], both)).toEqual(["ana>tag:c"]);
  });
  it("are kept for networks", () => {
    const rows: [string, string][] = [
      ["group:dev", "10.20.1.0/24"],
      ["group:dev", "tag:ci"],
      ["group:dev", "tag:prod"],
    ];
    expect(kept(["group:dev"], ["10.20.0.0/14", "tag:ci"], rows)).toEqual([
      "group:dev>10.20.1.0/24",
      "group:dev>tag:ci",
    ]);
  });
});

describe("a map", () => {
  const share = (pairs: number) => [{ rule: 0, before: pairs, after: pairs }];
  const map = (from: string[], to: string[], cells: Partial<AccessCell>[]) => ({
    from: from.map((name) => principal(name)),
    to: to.map((name) => principal(name, name.includes("/") ? "route" : "tag")),
    moreFrom: 0,
    moreTo: 0,
    moreCells: 0,
    rules: [rule(1)],
    cells: cells.map((one) =>
      cell({ rules: share(one.pairs ?? 1), lostPairs: 0, gainedPairs: 0, changedPairs: 0, ...one }),
    ),
  });

  it("combines many networks into one", () => {
    const networks = Array.from({ length: 20 }, (_, i) => `10.${i}.0.0/16`);
    const all = map(
      ["tag:a", "tag:b"],
      ["tag:c", ...networks],
      [
        { from: 0, to: 0, pairs: 3, of: 3 },
        { from: 0, to: 1, pairs: 2, of: 4, ports: ["port 22"] },
        { from: 0, to: 5, pairs: 4, of: 4, ports: ["port 22", "port 80"] },
      ],
    );
    const few = withoutManyRoutes(all);
    expect(few.to.map((p) => p.name)).toEqual(["tag:c", "20 networks"]);
    expect(few.cells[1]).toMatchObject({
      from: 0,
      to: 1,
      pairs: 6,
      of: 80,
      ports: ["port 22", "port 80"],
      rules: share(6),
    });
    expect(withoutManyRoutes(map(["tag:a"], ["tag:b", "10.0.0.0/8"], [])).to).toHaveLength(2);
  });

  it("begins with those who have access", () => {
    const all = map(
      ["a", "b", "c"],
      ["x", "y"],
      [
        { from: 1, to: 1 },
        { from: 2, to: 0 },
        { from: 2, to: 1 },
      ],
    );
    const first = connectedFirst(all);
    expect([first.from.map((p) => p.name), first.to.map((p) => p.name)]).toEqual([
      ["c", "b", "a"],
      ["y", "x"],
    ]);
    expect(first.cells.map(({ from, to }) => [from, to])).toEqual([
      [1, 0],
      [0, 1],
      [0, 0],
    ]);
  });
});
