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

test("every node is in one of the groups, and all that need attention are in the first", () => {
  const rows = Array.from({ length: 12 }, (_, i) => node(String(i), { expired: i < 10 }));
  const around = { presence: undefined, owned: undefined, now };
  const groups = attentionGroups(rows, around).map((group) => group.rows.map(({ id }) => id));
  expect(groups).toEqual([
    ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
    ["10", "11"],
  ]);
});

test("a file says how each node is, and when it was seen, also of those that are here", () => {
  const columns = nodeColumns({
    hosts: undefined,
    around: { presence: undefined, owned: undefined, now },
    newest: "",
    onOpen: () => {},
  });
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
