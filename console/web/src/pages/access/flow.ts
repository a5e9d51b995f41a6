import { type AccessRow, type Change, lineOf } from "@/access";
import type { AccessPrincipal, AccessRule } from "@/api";
import { withoutSecondNames } from "./tidyMap";

/** A name in one of the three columns. */
export interface FlowItem {
  id: string;
  column: 0 | 1 | 2;
  principal?: AccessPrincipal;
  rule?: AccessRule;
  pairs: number;
  change: Change;
  y: number;
}

/** A path between a name and a rule. */
export interface FlowEdge {
  id: string;
  from: FlowItem;
  to: FlowItem;
  rule: AccessRule;
  pairs: number;
  change: Change;
  width: number;
}

export interface FlowLayout {
  items: FlowItem[];
  edges: FlowEdge[];
  height: number;
  /** How many paths there are from a source through a rule to a destination. */
  paths: number;
  /** How many of these paths are drawn. */
  drawn: number;
}

export const itemHeight = 32;
export const itemGap = 8;
/** How many paths are drawn at first, and after asking for more. */
export const mostPaths = { usual: 40, more: 400 };
const [thinnest, thickest] = [1, 10];
/** The maximum gap between names in a short column next to a long one. */
const widestGap = 28;

export const ruleId = (rule: AccessRule) =>
  `${rule.change === "removed" ? "old" : "line"}${lineOf(rule)}${lineOf(rule) === 0 ? rule.list : ""}`;

interface Sum {
  before: number;
  after: number;
}

const changeOfSum = ({ before, after }: Sum): Change =>
  before === after ? "" : before === 0 ? "gained" : after === 0 ? "lost" : "changed";

/**
 * Lays out three columns of names, those with the most pairs first. Only the largest paths are drawn, and those that a
 * draft changes.
 */
export function layOutFlow(rows: readonly AccessRow[], focus: string, most = mostPaths.usual): FlowLayout {
  const sums = new Map<string, Sum & { rule: AccessRule; from?: AccessPrincipal; to?: AccessPrincipal }>();
  const rules = new Map<string, AccessRule & Sum>();
  const paths: { pairs: number; edges: [string, string]; rule: string; changed: boolean }[] = [];
  const add = (key: string, use: Sum & { rule: AccessRule }, end: { from?: AccessPrincipal; to?: AccessPrincipal }) => {
    const sum = sums.get(key) ?? { before: 0, after: 0, rule: use.rule, ...end };
    sum.before += use.before;
    sum.after += use.after;
    sums.set(key, sum);
  };
  for (const row of withoutSecondNames(rows)) {
    for (const use of row.rules) {
      const id = ruleId(use.rule);
      if (focus && ![`from ${row.from.name}`, `to ${row.to.name}`, `rule ${id}`].includes(focus)) continue;
      const edges: [string, string] = [`from ${row.from.name}|${id}`, `${id}|to ${row.to.name}`];
      add(edges[0], use, { from: row.from });
      add(edges[1], use, { to: row.to });
      paths.push({ pairs: Math.max(use.before, use.after), edges, rule: id, changed: use.before !== use.after });
      const rule = rules.get(id) ?? { ...use.rule, before: 0, after: 0 };
      rule.before += use.before;
      rule.after += use.after;
      rules.set(id, rule);
    }
  }
  const chosen = [...paths].sort((a, b) => Number(b.changed) - Number(a.changed) || b.pairs - a.pairs).slice(0, most);
  const drawn = new Set(chosen.flatMap((path) => path.edges));
  const items = new Map<string, FlowItem>();
  const item = (id: string, column: 0 | 1 | 2, what: Partial<FlowItem>) => {
    const known = items.get(id) ?? { id, column, pairs: 0, change: "" as Change, y: 0, ...what };
    items.set(id, known);
    return known;
  };
  const ruleItem = (rule: AccessRule) => item(`rule ${ruleId(rule)}`, 1, { rule });
  for (const id of new Set(chosen.map((path) => path.rule))) {
    const rule = rules.get(id);
    if (rule) Object.assign(ruleItem(rule), { pairs: Math.max(rule.after, rule.before), change: changeOfSum(rule) });
  }
  const edges: FlowEdge[] = [];
  for (const [id, sum] of sums) {
    if (!drawn.has(id)) continue;
    const middle = ruleItem(sum.rule);
    const end = sum.from
      ? item(`from ${sum.from.name}`, 0, { principal: sum.from })
      : item(`to ${sum.to?.name}`, 2, { principal: sum.to });
    const pairs = Math.max(sum.after, sum.before);
    end.pairs += pairs;
    edges.push({
      id,
      from: sum.from ? end : middle,
      to: sum.from ? middle : end,
      rule: sum.rule,
      pairs,
      change: changeOfSum(sum),
      width: 0,
    });
  }
  const widest = Math.max(1, ...edges.map((edge) => edge.pairs));
  for (const edge of edges) edge.width = edgeWidth(edge.pairs, widest);
  const height = place([...items.values()], orderOf(rows));
  return { items: [...items.values()], edges, height, paths: paths.length, drawn: chosen.length };
}

/** The width of a path for a number of pairs, on a scale that keeps a few visible next to thousands. */
export const edgeWidth = (pairs: number, widest: number): number =>
  thinnest + Math.sqrt(pairs / widest) * (thickest - thinnest);

function orderOf(rows: readonly AccessRow[]): ReadonlyMap<string, number> {
  const order = new Map<string, number>();
  for (const row of rows) order.set(`from ${row.from.name}`, row.cell.from).set(`to ${row.to.name}`, row.cell.to);
  return order;
}

/** Sets the position of each name, those with the most pairs first; shorter columns get wider gaps. */
function place(items: FlowItem[], order: ReadonlyMap<string, number>): number {
  const placeOf = (item: FlowItem) => (item.rule ? lineOf(item.rule) : (order.get(item.id) ?? 0));
  const columns = ([0, 1, 2] as const).map((column) =>
    items.filter((one) => one.column === column).sort((a, b) => b.pairs - a.pairs || placeOf(a) - placeOf(b)),
  );
  const tall = Math.max(...columns.map((list) => list.length)) * (itemHeight + itemGap) - itemGap;
  for (const list of columns) {
    const gap = Math.min(widestGap, (tall - list.length * itemHeight) / Math.max(1, list.length - 1));
    list.forEach((one, i) => {
      one.y = i * (itemHeight + gap);
    });
  }
  return Math.max(tall, 0);
}

/** The SVG path from the right end of one name to the left end of another. */
export function path(x1: number, y1: number, x2: number, y2: number): string {
  const bend = (x2 - x1) / 2;
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}
