import { Chunk } from "@codemirror/merge";
import { Text } from "@codemirror/state";

/** Lines that differ between two texts. Lines count from 0, and the ends are exclusive. */
export interface LineChange {
  fromA: number;
  toA: number;
  fromB: number;
  toB: number;
}

const lineOf = (text: Text, offset: number) => (offset > text.length ? text.lines : text.lineAt(offset).number - 1);

export function lineChanges(before: string, after: string): LineChange[] {
  const a = Text.of(before.split("\n"));
  const b = Text.of(after.split("\n"));
  return Chunk.build(a, b).map((chunk) => ({
    fromA: lineOf(a, chunk.fromA),
    toA: chunk.fromA === chunk.toA ? lineOf(a, chunk.fromA) : lineOf(a, chunk.toA),
    fromB: lineOf(b, chunk.fromB),
    toB: chunk.fromB === chunk.toB ? lineOf(b, chunk.fromB) : lineOf(b, chunk.toB),
  }));
}

/** Maps a line of the old text to the new one: to the same line, or to the place where it was. Lines count from 1. */
export function lineAfter(changes: readonly LineChange[], line: number): number {
  const at = line - 1;
  let moved = 0;
  for (const change of changes) {
    if (at < change.fromA) break;
    if (at < change.toA)
      return Math.min(change.fromB + (at - change.fromA), Math.max(change.fromB, change.toB - 1)) + 1;
    moved = change.toB - change.toA;
  }
  return at + moved + 1;
}

/** Lines that both texts agree on, or that each of them changed differently. */
export type Part = { lines: string[] } | { mine: string[]; theirs: string[] };

export type Choice = "mine" | "theirs" | "both";

/** Merges two people's edits of one text. A choice is needed only where both changed the same lines. */
export function mergeLines(base: string, mine: string, theirs: string): Part[] {
  const [baseLines, myLines, theirLines] = [base, mine, theirs].map((text) => text.split("\n")) as [
    string[],
    string[],
    string[],
  ];
  const own = lineChanges(base, mine);
  const others = lineChanges(base, theirs);
  const parts: Part[] = [];
  const push = (lines: string[]) => {
    const last = parts.at(-1);
    if (last && "lines" in last) last.lines.push(...lines);
    else if (lines.length > 0) parts.push({ lines: [...lines] });
  };
  let at = 0;
  for (const { from, to, left, right } of regions(own, others)) {
    push(baseLines.slice(at, from));
    at = to;
    const my = cut(myLines, left, from, to);
    const their = cut(theirLines, right, from, to);
    if (left.length === 0) push(their);
    else if (right.length === 0 || my.join("\n") === their.join("\n")) push(my);
    else parts.push({ mine: my, theirs: their });
  }
  push(baseLines.slice(at));
  return parts;
}

interface Region {
  from: number;
  to: number;
  left: LineChange[];
  right: LineChange[];
}

/** The changed ranges of the base, with the changes of both sides. Adjacent ones are joined. */
function regions(own: readonly LineChange[], others: readonly LineChange[]): Region[] {
  const all = [
    ...own.map((change) => ({ change, side: "left" as const })),
    ...others.map((change) => ({ change, side: "right" as const })),
  ].sort((a, b) => a.change.fromA - b.change.fromA || a.change.toA - b.change.toA);
  const found: Region[] = [];
  for (const { change, side } of all) {
    let region = found.at(-1);
    if (!region || change.fromA > region.to) {
      region = { from: change.fromA, to: change.toA, left: [], right: [] };
      found.push(region);
    }
    region.to = Math.max(region.to, change.toA);
    region[side].push(change);
  }
  return found;
}

/** The lines of one side that replace a range of the base. */
function cut(lines: string[], changes: readonly LineChange[], from: number, to: number): string[] {
  const first = changes[0];
  const last = changes.at(-1);
  if (!first || !last) return [];
  return lines.slice(first.fromB - (first.fromA - from), last.toB + (to - last.toA));
}

/** The merged text for these choices. A conflict without a choice uses mine. */
export function mergedText(parts: readonly Part[], choices: readonly (Choice | undefined)[]): string {
  let conflict = 0;
  return parts
    .flatMap((part) => {
      if ("lines" in part) return part.lines;
      const choice = choices[conflict++] ?? "mine";
      return [...(choice === "theirs" ? [] : part.mine), ...(choice === "mine" ? [] : part.theirs)];
    })
    .join("\n");
}

/**
 * The current text without the change that was made from one text to another; null if later changes touch the same
 * lines.
 */
export function withoutChange(before: string, after: string, current: string): string | null {
  const later = lineChanges(after, current);
  const old = before.split("\n");
  const lines = current.split("\n");
  // From the end, so that the line numbers before it stay valid.
  for (const undo of lineChanges(after, before).reverse()) {
    const back = old.slice(undo.fromB, undo.toB);
    const same = later.filter((change) => overlap(undo, change));
    if (same.some((change) => !isUndone(undo, back, change, current))) return null;
    if (same.length > 0) continue;
    const last = later.filter((change) => change.toA <= undo.fromA).at(-1);
    lines.splice(undo.fromA + (last ? last.toB - last.toA : 0), undo.toA - undo.fromA, ...back);
  }
  return lines.join("\n");
}

/** Whether two changes of one text touch the same lines. Changes of adjacent lines don't, so rules can be appended. */
const overlap = (a: LineChange, b: LineChange) =>
  (a.fromA < b.toA && b.fromA < a.toA) || (a.fromA === a.toA && b.fromA === b.toA && a.fromA === b.fromA);

/** Whether a later change has already done what would undo an earlier one. */
const isUndone = (undo: LineChange, back: readonly string[], change: LineChange, current: string) =>
  undo.fromA === change.fromA &&
  undo.toA === change.toA &&
  current.split("\n").slice(change.fromB, change.toB).join("\n") === back.join("\n");

/** Lines without their common indentation. */
export function outdented(lines: readonly string[]): string {
  const depth = Math.min(...lines.filter((line) => line.trim()).map((line) => line.length - line.trimStart().length));
  return lines.map((line) => line.slice(Number.isFinite(depth) ? depth : 0)).join("\n");
}
