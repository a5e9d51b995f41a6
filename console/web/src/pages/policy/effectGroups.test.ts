import { describe, expect, it } from "vitest";
import type { Node } from "@/api";
import { readDocument } from "./document";
import { shift } from "./effect.fixture";
import { groupsByRule, ruleEnds } from "./effectGroups";
import type { Shift } from "./effectWords";

const named = (...names: string[]) => ({ names, count: names.length });
const pair = (from: string, to: string) => ({ from: { id: from, name: from }, to: { id: to, name: to } });

describe("changes by the same rule", () => {
  const dev = [
    shift({ from: named("chidi", "dana"), pairs: 20, online: 1, gained: ["port 22"], gainedLines: [7] }),
    shift({ from: named("bjorn", "priya"), pairs: 30, online: 2, gained: ["port 22"], gainedLines: [7] }),
    shift({
      from: named("bjorn", "priya"),
      to: named("tag:web"),
      pairs: 5,
      online: 2,
      gained: ["port 22"],
      gainedLines: [7],
    }),
  ];

  it("are one group, with all who are concerned", () => {
    const [group, ...others] = groupsByRule(dev);
    expect(others).toEqual([]);
    expect(group?.parts).toHaveLength(1);
    expect(group?.whole).toMatchObject({
      from: named("bjorn", "chidi", "dana", "priya"),
      to: named("tag:db", "tag:web"),
      pairs: 55,
      online: 3,
    });
  });

  it("have a part for each kind of change, the most pairs first", () => {
    const more = shift({ pairs: 40, gained: ["ports 22, 443"], gainedLines: [7] });
    const groups = groupsByRule([...dev, more, shift({ pairs: 90, lost: ["port 1"], lostLines: [3] })]);
    expect(groups.map((group) => group.parts.map((part) => [part.gained, part.pairs]))).toEqual([
      [
        [["port 22"], 55],
        [["ports 22, 443"], 40],
      ],
      [[[], 90]],
    ]);
  });

  it("are kept apart without rules, and between nodes of one person", () => {
    expect(groupsByRule([shift({ lost: ["all ports"] }), shift({ lost: ["all ports"] })])).toHaveLength(2);
    expect(groupsByRule([shift({ lostLines: [3] }), shift({ lostLines: [3], own: true })])).toHaveLength(2);
  });

  it("count those who are not named once", () => {
    const many = { names: ["ana", "bo"], count: 10 };
    const [group] = groupsByRule([
      shift({ from: many, gainedLines: [7] }),
      shift({ from: many, to: named("tag:web"), gainedLines: [7] }),
      shift({ from: named("cy"), gainedLines: [7] }),
    ]);
    expect(group?.whole.from).toEqual({ names: ["ana", "bo", "cy"], count: 11 });
  });
});

describe("the ends of a rule", () => {
  const text = `{
  "groups": {"group:dev": ["chidi", "bjorn@"]},
  "hosts": {"printer": "100.64.0.9"},
  "acls": [
    {"action": "accept", "src": ["autogroup:member"], "dst": ["autogroup:self:*", "tag:web:443"]},
    {"action": "accept", "src": ["group:dev", "tag:ci"], "dst": ["tag:prod:443", "tag:web:22", "printer:9100"]},
  ],
  "grants": [{"src": ["group:dev"], "dst": ["tag:web"], "ip": ["22"]}],
}`;
  const document = readDocument(text);
  const documents = { before: document, after: document };
  const nodes: Record<string, Partial<Node>> = {
    "1": { tags: [], user: { name: "chidi" } as Node["user"], ipAddresses: [] },
    "2": { tags: ["tag:web", "tag:prod"], ipAddresses: [] },
    "3": { tags: ["tag:ci"], ipAddresses: ["100.64.0.9"] },
  };
  const ends = (...parts: Partial<Shift>[]) => ruleEnds(parts.map(shift), documents, (id) => nodes[id] as Node);

  it("are those that mean the nodes, at the port that changes", () => {
    expect(ends({ gained: ["port 22"], gainedLines: [6], samples: [pair("1", "2")] })).toEqual({
      from: ["group:dev"],
      to: ["tag:web"],
    });
    expect(ends({ lost: ["port 443"], lostLines: [6], samples: [pair("3", "2")] })).toEqual({
      from: ["tag:ci"],
      to: ["tag:prod"],
    });
  });

  it("are also found in grants, by address, and among own nodes", () => {
    expect(ends({ gained: ["port 22"], gainedLines: [8], samples: [pair("1", "2")] })?.to).toEqual(["tag:web"]);
    expect(ends({ gained: ["port 9100"], gainedLines: [6], samples: [pair("1", "3")] })?.to).toEqual(["printer"]);
    expect(ends({ own: true, gained: ["all ports"], gainedLines: [5], samples: [pair("1", "1")] })).toEqual({
      from: ["autogroup:member"],
      to: ["autogroup:self"],
    });
  });

  it("are unknown if a rule does not name a node, or a node is gone", () => {
    expect(ends({ gained: ["port 22"], gainedLines: [5], samples: [pair("3", "2")] })).toBeNull();
    expect(ends({ gained: ["port 22"], gainedLines: [6], samples: [pair("1", "4")] })).toBeNull();
    expect(ends({ gained: ["port 22"], samples: [pair("1", "2")] })).toBeNull();
  });
});
