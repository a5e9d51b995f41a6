import type { Node, PolicyEffect } from "@/api";
import { splitPorts } from "@/policy/edits";
import { firstPort } from "@/policy/tests";
import type { Document } from "./document";
import { fits } from "./names";

type Principals = PolicyEffect["shifts"][number]["from"];

/** What changes for some principals; the shifts of an effect all have these fields. */
interface Change {
  from: Principals;
  to: Principals;
  own: boolean;
  pairs: number;
  samples: PolicyEffect["shifts"][number]["samples"];
  lost: readonly unknown[];
  gained: readonly unknown[];
  lostLines: readonly number[];
  gainedLines: readonly number[];
  online?: number;
}

/** The changes that one rule makes, or several rules together. */
export interface Group<T> {
  /** The whole group as one change. What is lost and gained is taken from the largest part. */
  whole: T;
  /** One part for each kind of change, such as different ports, largest number of pairs first. */
  parts: T[];
}

const mostSamples = 20;

/** One group for each rule, or combination of rules, that causes changes; largest number of pairs first. */
export function groupsByRule<T extends Change>(shifts: readonly T[]): Group<T>[] {
  const byLines = new Map<string, T[]>();
  shifts.forEach((shift, i) => {
    const lines = [...shift.lostLines, ...shift.gainedLines];
    // Without rules on either side, there is nothing to group them by.
    const key = lines.length > 0 ? JSON.stringify([shift.own, shift.lostLines, shift.gainedLines]) : String(i);
    byLines.set(key, [...(byLines.get(key) ?? []), shift]);
  });
  const groups = Array.from(byLines.values(), (all) => {
    const byKind = new Map<string, T[]>();
    for (const shift of all) {
      const kind = JSON.stringify([shift.lost, shift.gained]);
      byKind.set(kind, [...(byKind.get(kind) ?? []), shift]);
    }
    const parts = [...byKind.values()].map(joined).sort((a, b) => b.pairs - a.pairs);
    return { whole: joined(parts), parts };
  });
  return groups.sort((a, b) => b.whole.pairs - a.whole.pairs);
}

/** Several changes as one. What is lost and gained is taken from the first. */
function joined<T extends Change>(shifts: readonly T[]): T {
  const [first] = shifts as [T];
  if (shifts.length === 1) return first;
  const online = new Map<string, number>();
  for (const { from, online: n = 0 } of shifts) {
    const who = from.names.join();
    online.set(who, Math.max(online.get(who) ?? 0, n));
  }
  return {
    ...first,
    from: united(shifts.map((shift) => shift.from)),
    to: united(shifts.map((shift) => shift.to)),
    pairs: shifts.reduce((sum, shift) => sum + shift.pairs, 0),
    samples: shifts.flatMap((shift) => shift.samples).slice(0, Math.max(mostSamples, first.samples.length)),
    ...(first.online !== undefined && { online: [...online.values()].reduce((sum, n) => sum + n, 0) }),
  };
}

function united(all: readonly Principals[]): Principals {
  const names = [...new Set(all.flatMap((one) => one.names))].sort();
  const unnamed = new Map(all.map((one) => [one.names.join(), one.count - one.names.length]));
  return { names, count: names.length + [...unnamed.values()].reduce((sum, n) => sum + n, 0) };
}

/** The ends of a group as its rules name them, such as group:dev and tag:web. */
export interface Ends {
  from: string[];
  to: string[];
}

/**
 * Finds the names that the rules of a group use for its nodes. Null if they do not name all of them, for example because
 * a rule is not on its line any more.
 */
export function ruleEnds<T extends Change>(
  parts: readonly T[],
  documents: { before: Document; after: Document } | undefined,
  node: (id: string) => Node | undefined,
): Ends | null {
  if (!documents) return null;
  const from = new Set<string>();
  const to = new Set<string>();
  for (const part of parts) {
    const rules = [
      ...rulesOn(documents.before, part.lostLines).map((rule) => ({ rule, document: documents.before })),
      ...rulesOn(documents.after, part.gainedLines).map((rule) => ({ rule, document: documents.after })),
    ];
    const port = firstPort([...part.lost, ...part.gained].filter((said) => typeof said === "string"));
    for (const sample of part.samples) {
      const [source, target] = [node(sample.from.id), node(sample.to.id)];
      if (!source || !target) return null;
      const sources = rules.flatMap(({ rule, document }) => rule.src.filter((name) => means(name, source, document)));
      const targets = rules.flatMap(({ rule, document }) =>
        rule.dst
          .map((dst): [string, string] => (rule.list === "acls" ? splitPorts(dst) : [dst, "*"]))
          .filter(([name]) => (name === "autogroup:self" ? part.own : means(name, target, document))),
      );
      if (sources.length === 0 || targets.length === 0) return null;
      const fitting = targets.filter(([, ports]) => !port || opens(ports, port.number));
      for (const name of sources) from.add(name);
      for (const [name] of fitting.length > 0 ? fitting : targets) to.add(name);
    }
  }
  return from.size > 0 && to.size > 0 ? { from: [...from], to: [...to] } : null;
}

const rulesOn = (document: Document, lines: readonly number[]) =>
  document.rules.filter((rule) => lines.includes(rule.line));

/** Whether ports in the syntax of rules, such as 22,8000-8100, include a port. */
const opens = (ports: string, port: number) =>
  ports.split(",").some((range) => {
    const [first, last = first] = range.trim().split("-");
    return first === "*" || (Number(first) <= port && port <= Number(last));
  });

/** Whether a name in a rule refers to a node. */
function means(name: string, node: Node, document: Document): boolean {
  if (name === "*" || name === "autogroup:danger-all") return true;
  if (name.startsWith("tag:")) return node.tags.includes(name);
  if (name === "autogroup:tagged") return node.tags.length > 0;
  if (name === "autogroup:member") return node.tags.length === 0;
  const { user } = node;
  const people = name.startsWith("group:") ? (document.groups.get(name) ?? []) : [name];
  if (node.tags.length === 0 && user && people.some((one) => fits(user, one))) return true;
  return node.ipAddresses.includes(document.hosts.get(name) ?? name);
}
