import type { AccessRow, RuleUse } from "@/access";
import type { AccessCell, AccessMap, AccessPrincipal } from "@/api";
import { accessView } from "@/text/access";

/** The kind of the principal that stands for all networks of a side. */
export const combined = "routes";
/** Above this number, networks are combined. */
const mostRoutes = 12;

/** How many networks a side of the map has. */
const routesOf = (list: readonly AccessPrincipal[]) => list.filter(({ kind }) => kind === "route").length;

/** Whether a map has more networks than can be shown next to everything else. */
export const hasManyRoutes = (map: AccessMap) => Math.max(routesOf(map.from), routesOf(map.to)) > mostRoutes;

/** A map with one principal for all networks of a side, if there are many. */
export const withoutManyRoutes = (map: AccessMap): AccessMap => combinedOn(combinedOn(map, "from"), "to");

function combinedOn(map: AccessMap, side: "from" | "to"): AccessMap {
  const count = routesOf(map[side]);
  if (count <= mostRoutes) return map;
  const name = accessView.routes.name(count);
  const all: AccessPrincipal = { kind: combined, name, id: "", nodes: 0, online: 0, expired: 0 };
  const kept = map[side].filter(({ kind }) => kind !== "route");
  const list = [...kept, all];
  const places = map[side].map((one) => (one.kind === "route" ? kept.length : kept.indexOf(one)));
  const cells = new Map<string, AccessCell>();
  for (const cell of map.cells) {
    const next = { ...cell, [side]: places[cell[side]] ?? 0 };
    const key = `${next.from} ${next.to}`;
    if (next[side] < kept.length) cells.set(key, next);
    else cells.set(key, sum(cells.get(key), next, count));
  }
  return { ...map, [side]: list, cells: [...cells.values()].sort((a, b) => a.from - b.from || a.to - b.to) };
}

const union = (a: readonly string[], b: readonly string[]) => [...new Set([...a, ...b])];

/** Two cells combined; `of` counts pairs with all networks, including those that nobody reaches. */
function sum(known: AccessCell | undefined, cell: AccessCell, networks: number): AccessCell {
  if (!known) return { ...cell, of: cell.of * networks };
  const rules = new Map(known.rules.map((share) => [share.rule, { ...share }]));
  for (const share of cell.rules) {
    const had = rules.get(share.rule) ?? { rule: share.rule, before: 0, after: 0 };
    rules.set(share.rule, { ...had, before: had.before + share.before, after: had.after + share.after });
  }
  return {
    ...known,
    ports: union(known.ports, cell.ports),
    lost: union(known.lost, cell.lost),
    gained: union(known.gained, cell.gained),
    pairs: known.pairs + cell.pairs,
    lostPairs: known.lostPairs + cell.lostPairs,
    gainedPairs: known.gainedPairs + cell.gainedPairs,
    changedPairs: known.changedPairs + cell.changedPairs,
    rules: [...rules.values()],
  };
}

/** A map with the most connected principals first: sorted by name, the first cells might all be empty. */
export function connectedFirst(map: AccessMap): AccessMap {
  const order = (list: readonly AccessPrincipal[], side: "from" | "to") => {
    const cells = new Array<number>(list.length).fill(0);
    for (const cell of map.cells) cells[cell[side]] = (cells[cell[side]] ?? 0) + 1;
    return list.map((_, i) => i).sort((a, b) => (cells[b] ?? 0) - (cells[a] ?? 0) || a - b);
  };
  const [down, along] = [order(map.from, "from"), order(map.to, "to")];
  const placed = (order: readonly number[]) => {
    const places: number[] = [];
    order.forEach((was, is) => {
      places[was] = is;
    });
    return places;
  };
  const [rows, columns] = [placed(down), placed(along)];
  return {
    ...map,
    from: down.flatMap((i) => map.from[i] ?? []),
    to: along.flatMap((i) => map.to[i] ?? []),
    cells: map.cells.map((cell) => ({ ...cell, from: rows[cell.from] ?? 0, to: columns[cell.to] ?? 0 })),
  };
}

const people = ["group", "user", "others"];

/**
 * Rows with only those rules that name both of their ends. A node with two tags belongs to two principals, so a rule
 * about one of its tags also applies to the other, and would count its nodes twice.
 */
export function withoutSecondNames(rows: readonly AccessRow[]): AccessRow[] {
  const known = new Set(rows.flatMap((row) => [row.from.name, row.to.name]));
  const wide = { tags: new Map<string, boolean>(), people: new Map<string, boolean>() };
  const isWide = (kind: "tags" | "people", names: readonly string[]) => {
    const key = names.join(" ");
    const found = wide[kind].get(key) ?? names.some((name) => (kind === "tags" ? anyTag : anyPerson)(name, known));
    wide[kind].set(key, found);
    return found;
  };
  const names = (end: AccessPrincipal, said: readonly string[]) => {
    if (said.length === 0 || said.some((name) => bare(name) === end.name)) return true;
    if (end.kind === "tag") return isWide("tags", said);
    return !people.includes(end.kind) || isWide("people", said);
  };
  const both = ({ rule }: RuleUse, row: AccessRow) =>
    names(row.from, rule.from) &&
    names(
      row.to,
      rule.to.map((to) => to.name),
    );
  return rows.flatMap((row) => {
    const rules = row.rules.filter((use) => both(use, row));
    return rules.length === row.rules.length ? [row] : rules.length > 0 ? [{ ...row, rules }] : [];
  });
}

/** A user's name without the trailing @ that rules may have. */
const bare = (name: string) => name.replace(/@$/, "");

/** Whether a name in a rule may refer to nodes with any tag. */
const anyTag = (name: string) =>
  !name.startsWith("tag:") &&
  !name.startsWith("group:") &&
  !["autogroup:member", "autogroup:admin", "autogroup:self", "autogroup:internet"].includes(name) &&
  !(outsideMesh(name) || name.includes("@"));

/** Whether a name in a rule may refer to untagged nodes of any user. */
const anyPerson = (name: string, known: ReadonlySet<string>) =>
  !name.startsWith("tag:") &&
  !known.has(bare(name)) &&
  !["autogroup:tagged", "autogroup:internet"].includes(name) &&
  !outsideMesh(name);

/** Whether a name is an address or a prefix outside the address ranges of nodes. */
const outsideMesh = (name: string) =>
  /^[\d.]+(\/\d+)?$|^[\da-f:]*::?[\da-f:]*(\/\d+)?$/i.test(name) &&
  !name.endsWith("/0") &&
  !/^100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|^fd7a:115c:a1e0:/i.test(name);
