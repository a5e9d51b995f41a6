import type { AccessCell, AccessMap, AccessPrincipal, AccessRule } from "@/api";

/** A pair of principals, and what one can reach on the other. */
export interface AccessRow {
  id: string;
  from: AccessPrincipal;
  to: AccessPrincipal;
  cell: AccessCell;
  /** The rules that allow it, or allowed it before the draft. */
  rules: RuleUse[];
}

export interface RuleUse {
  rule: AccessRule;
  before: number;
  after: number;
}

/** How a draft changes something. */
export type Change = "gained" | "lost" | "changed" | "";

export const rowId = (from: AccessPrincipal, to: AccessPrincipal) => `${from.name}>${to.name}`;

export function rowsOf(map: AccessMap): AccessRow[] {
  return map.cells.flatMap((cell) => {
    const [from, to] = [map.from[cell.from], map.to[cell.to]];
    if (!from || !to) return [];
    const rules = cell.rules.flatMap((share) => {
      const rule = map.rules[share.rule];
      return rule ? [{ rule, before: share.before, after: share.after }] : [];
    });
    return [{ id: rowId(from, to), from, to, cell, rules }];
  });
}

export function changeOf(cell: AccessCell): Change {
  const gains = cell.gained.length > 0;
  const loses = cell.lost.length > 0;
  if (gains && loses) return "changed";
  return gains ? "gained" : loses ? "lost" : "";
}

/** The line of a rule in the text being viewed: the draft, or the policy in force for rules that the draft removes. */
export const lineOf = (rule: AccessRule): number => (rule.change === "removed" ? rule.line : rule.draftLine);

/** The lines of rules that are in effect in the text being viewed. */
export function linesOf(rules: readonly RuleUse[]): number[] {
  const lines = rules.filter((use) => use.rule.change !== "removed").map((use) => lineOf(use.rule));
  return [...new Set(lines.filter((line) => line > 0))].sort((a, b) => a - b);
}

/** Shortens "ports 22, 5432" to "22, 5432" where it is clear that these are ports. */
export const shortPorts = (ports: readonly string[]): string =>
  ports
    .map((text) => text.replace(/\bports? /, "").replace(/^(TCP|UDP|SCTP) /, (name) => name.toLowerCase()))
    .join(", ");

/** Splits a principal's name into its kind and the rest. */
export function splitName(principal: AccessPrincipal): { kind: string; name: string } {
  const at = principal.name.indexOf(":");
  if (principal.kind === "group" || principal.kind === "tag" || principal.kind === "internet") {
    return { kind: principal.name.slice(0, at), name: principal.name.slice(at + 1) };
  }
  return { kind: principal.kind, name: principal.kind === "others" ? "others" : principal.name };
}

/** The text of the comment lines right above a line. */
export function commentAbove(text: string, line: number): string {
  const lines = text.split("\n").slice(0, Math.max(line - 1, 0));
  const words: string[] = [];
  for (let above = lines.pop()?.trim(); above?.startsWith("//"); above = lines.pop()?.trim()) {
    words.unshift(above.replace(/^\/+\s*/, ""));
  }
  return words.join(" ").trim();
}

/** A map in which rules without a comment field get the comment above them. */
export function withComments(map: AccessMap, inForce: string, draft: string | undefined): AccessMap {
  const comment = (rule: AccessRule) =>
    rule.comment || commentAbove(rule.change === "removed" ? inForce : (draft ?? inForce), lineOf(rule));
  return { ...map, rules: map.rules.map((rule) => ({ ...rule, comment: comment(rule) })) };
}

/** The text of the rule that starts on a line, without its indentation. */
export function ruleText(text: string, line: number): string {
  const lines = text.split("\n");
  const first = lines[line - 1];
  if (first === undefined) return "";
  const from =
    lines.slice(0, line - 1).reduce((sum, l) => sum + l.length + 1, 0) + first.length - first.trimStart().length;
  const end = endOfObject(text, text.indexOf("{", from));
  const margin = first.length - first.trimStart().length;
  return text
    .slice(from, end)
    .split("\n")
    .map((l, i) => (i === 0 ? l : l.slice(Math.min(margin, l.length - l.trimStart().length))))
    .join("\n");
}

/** The offset after the brace that closes the object at an offset. Comments and strings may contain braces too. */
function endOfObject(text: string, at: number): number {
  const tokens = /"(?:\\.|[^"\\])*"|\/\/[^\n]*|\/\*[\s\S]*?\*\/|[{}]/g;
  tokens.lastIndex = Math.max(at, 0);
  let depth = 0;
  for (let token = tokens.exec(text); token; token = tokens.exec(text)) {
    if (token[0] === "{") depth++;
    if (token[0] === "}" && --depth === 0) return tokens.lastIndex;
  }
  return text.length;
}
