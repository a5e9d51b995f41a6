import { expect, test } from "vitest";
import type { Node } from "@/api";
import { toCSV } from "@/ui/table/csv";
import { exported, nodeColumns } from "./columns";
import { attentionGroups } from "./groups";

const now = Date.parse("2026-03-02T12:00:00Z");
const node = (id: string, more: Partial<Node> = {}): Node =>
  ({
    id,
    givenName: `n${id}`,
    ipAddresses: ["100.64.0.1"],
    tags: [],
    user: { name: "ana" },
    online: true,
    expired: false,
    lastSeen: "2026-03-02T11:00:00Z",
    availableRoutes: [],
    approvedRoutes: [],
    ...more,
  }) as Node;

test("every node is in one of the groups, also those for which the first has no room", () => {
  const rows = Array.from({ length: 12 }, (_, i) => node(String(i), { expired: i < 10 }));
  const around = { presence: undefined, owned: undefined, now };
  const ids = (all: boolean) => attentionGroups(rows, around, all, () => {}).map((g) => g.rows.map(({ id }) => id));
  expect(ids(false)).toEqual([
    ["0", "1", "2", "3", "4", "5", "6", "7"],
    ["8", "9", "10", "11"],
  ]);
  expect(ids(true)).toEqual([
    ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
    ["10", "11"],
  ]);
  expect(attentionGroups(rows, around, false, () => {})[0]?.total).toBe(10);
});

test("a file says how each node is, and when it was seen, also of those that are here", () => {
  const columns = nodeColumns({ hosts: undefined, presence: undefined, newest: "", now, onOpen: () => {} });
  const some = columns.filter(({ id }) => id === "node" || id === "seen");
  expect(toCSV(exported(some), [node("1"), node("2", { online: false }), node("3", { expired: true })])).toBe(
    [
      "Node,State,Last seen",
      "n1,Online,2026-03-02T12:00:00.000Z",
      "n2,Offline,2026-03-02T11:00:00Z",
      "n3,Key expired,2026-03-02T12:00:00.000Z",
      "",
    ].join("\r\n"),
  );
});
