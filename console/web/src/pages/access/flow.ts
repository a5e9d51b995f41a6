import { type AccessRow, type Change, lineOf } from "@/access";
import type { AccessPrincipal, AccessRule } from "@/api";

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
  /** The number of rules that are not drawn. */
  more: number;
}

export const itemHeight = 32;
export const itemGap = 8;
const mostRules = 60;
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

/** Lays out three columns in the order of the map and of the policy text, so that it is the same at every visit. */
export function layOutFlow(rows: readonly AccessRow[], focus: string): FlowLayout {
  const sums = new Map<string, Sum & { rule: AccessRule; from?: AccessPrincipal; to?: AccessPrincipal }>();
  const rules = new Map<string, AccessRule & Sum>();
  const add = (key: string, use: Sum & { rule: AccessRule }, end: { from?: AccessPrincipal; to?: AccessPrincipal }) => {
    const sum = sums.get(key) ?? { before: 0, after: 0, rule: use.rule, ...end };
    sum.before += use.before;
    sum.after += use.after;
    sums.set(key, sum);
  };
  for (const row of rows) {
    for (const use of row.rules) {
      const id = ruleId(use.rule);
      if (focus && ![`from ${row.from.name}`, `to ${row.to.name}`, `rule ${id}`].includes(focus)) continue;
      add(`from ${row.from.name}|${id}`, use, { from: row.from });
      add(`${id}|to ${row.to.name}`, use, { to: row.to });
      const rule = rules.get(id) ?? { ...use.rule, before: 0, after: 0 };
      rule.before += use.before;
      rule.after += use.after;
      rules.set(id, rule);
    }
  }
  const drawn = chosenRules(rules);
  const items = new Map<string, FlowItem>();
  const item = (id: string, column: 0 | 1 | 2, what: Partial<FlowItem>) => {
    const known = items.get(id) ?? { id, column, pairs: 0, change: "" as Change, y: 0, ...what };
    items.set(id, known);
    return known;
  };
  const ruleItem = (rule: AccessRule) => item(`rule ${ruleId(rule)}`, 1, { rule });
  for (const rule of drawn) {
    Object.assign(ruleItem(rule), { pairs: Math.max(rule.after, rule.before), change: changeOfSum(rule) });
  }
  const edges: FlowEdge[] = [];
  for (const [id, sum] of sums) {
    if (!drawn.some((rule) => ruleId(rule) === ruleId(sum.rule))) continue;
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
  return { items: [...items.values()], edges, height, more: rules.size - drawn.length };
}

/** The rules with the most pairs, in the order of the policy text. */
function chosenRules(rules: ReadonlyMap<string, AccessRule & Sum>): (AccessRule & Sum)[] {
  const weight = (rule: Sum) => Math.max(rule.before, rule.after);
  return [...rules.values()]
    .sort((a, b) => weight(b) - weight(a))
    .slice(0, mostRules)
    .sort((a, b) => lineOf(a) - lineOf(b) || a.change.localeCompare(b.change));
}

/** The width of a path for a number of pairs, on a scale that keeps a few visible next to thousands. */
export const edgeWidth = (pairs: number, widest: number): number =>
  thinnest + Math.sqrt(pairs / widest) * (thickest - thinnest);

function orderOf(rows: readonly AccessRow[]): ReadonlyMap<string, number> {
  const order = new Map<string, number>();
  for (const row of rows) order.set(`from ${row.from.name}`, row.cell.from).set(`to ${row.to.name}`, row.cell.to);
  return order;
}

/** Sets the position of each name; shorter columns get wider gaps. */
function place(items: FlowItem[], order: ReadonlyMap<string, number>): number {
  const columns = ([0, 1, 2] as const).map((column) =>
    items
      .filter((one) => one.column === column)
      .sort((a, b) => (column === 1 ? 0 : (order.get(a.id) ?? 0) - (order.get(b.id) ?? 0))),
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
