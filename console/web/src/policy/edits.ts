import { createScanner, type Node, parseTree } from "jsonc-parser";

/** Edits of a policy's text that leave everything else as it is: comments, order, unknown fields. */

export interface RuleEntry {
  src: string[];
  dst: string[];
  proto?: string;
  /** A comment line above the rule. */
  comment?: string;
}

export interface TestEntry {
  src: string;
  proto?: string;
  /** Only for an SSH test: then accept, check and deny name system users on the destination. */
  dst?: string[];
  accept?: string[];
  check?: string[];
  deny?: string[];
}

export interface Edit {
  text: string;
  /** The line of the inserted text, from 1. */
  line: number;
}

/** The behaviour of a network without a policy, written as a first policy. */
export const firstPolicy = `{
  // Everyone may reach everyone. Narrow it down, and watch the effect.
  "acls": [
    { "action": "accept", "src": ["*"], "dst": ["*:*"] },
  ],
}
`;

const lenient = { allowTrailingComma: true };

export function addRule(text: string, rule: RuleEntry): Edit {
  const root = parseTree(text, [], lenient);
  // A policy that uses only grants gets another grant.
  if (!memberOf(root, "acls") && memberOf(root, "grants")) {
    const targets = [...new Set(rule.dst.map((dst) => splitPorts(dst)[0]))];
    const ports = [...new Set(rule.dst.flatMap((dst) => splitPorts(dst)[1].split(",")))];
    const ip = ports.map((port) => (rule.proto ? `${rule.proto}:${port}` : port));
    return addEntry(text, "grants", { src: rule.src, dst: targets, ip }, rule.comment);
  }
  const { src, dst, proto, comment } = rule;
  return addEntry(text, "acls", { action: "accept", ...(proto && { proto }), src, dst }, comment);
}

export function addTest(text: string, { src, proto, dst, accept, check, deny }: TestEntry): Edit {
  return addEntry(text, dst ? "sshTests" : "tests", {
    src,
    ...(proto && { proto }),
    ...(dst && { dst }),
    ...(accept?.length && { accept }),
    ...(check?.length && { check }),
    ...(deny?.length && { deny }),
  });
}

/** The target and ports of an ACL destination: tag:db and 5432 for "tag:db:5432". */
export function splitPorts(dst: string): [target: string, ports: string] {
  const colon = dst.lastIndexOf(":");
  return colon < 0 ? [dst, "*"] : [dst.slice(0, colon), dst.slice(colon + 1)];
}

/** A value on one line, as people usually write rules. */
function inOneLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inOneLine).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, v]) => `${JSON.stringify(name)}: ${inOneLine(v)}`);
  return `{ ${members.join(", ")} }`;
}

function memberOf(root: Node | undefined, name: string): Node | undefined {
  return root?.children?.find((member) => member.children?.[0]?.value === name)?.children?.[1];
}

function addEntry(text: string, list: string, entry: unknown, comment = ""): Edit {
  const root = parseTree(text, [], lenient);
  if (root?.type !== "object") throw new Error("Nothing can be added because the policy isn't a JSON object.");
  const array = memberOf(root, list);
  const unit = unitOf(text);
  const item = [...(comment ? [`// ${comment}`] : []), inOneLine(entry)];
  if (array?.type === "array") return insertLast(text, array, item, unit);
  const lines = item.map((line) => `${unit}${unit}${line}`).join("\n");
  const member = `${JSON.stringify(list)}: [\n${lines},\n${unit}]`;
  const edit = insertLast(text, root, [member], unit);
  return { ...edit, line: edit.line + item.length };
}

/**
 * Inserts an item at the end of a list or an object, on its own line unless everything is on one line. The item may
 * have comment lines above it.
 */
function insertLast(text: string, parent: Node, lines: readonly string[], unit: string): Edit {
  const close = parent.offset + parent.length - 1;
  const last = parent.children?.at(-1);
  const end = last ? last.offset + last.length : parent.offset + 1;
  const comma = last && !hasComma(text.slice(end, close)) ? "," : "";
  const between = text.slice(end, close);
  const item = lines.join("\n");
  const broken = between.includes("\n") || item.includes("\n") || text.slice(parent.offset, end).includes("\n");
  if (!broken) {
    const head = text.slice(0, end) + comma + between.trimEnd();
    const space = last ? " " : "";
    return { text: `${head}${space}${item}${text.slice(close)}`, line: lineAt(head) };
  }
  // A comment after the last item on its line stays with it.
  const kept = between.trimEnd();
  const indent = last ? indentAt(text, last.offset) : indentAt(text, parent.offset) + unit;
  const head = `${text.slice(0, end)}${comma}${kept}\n`;
  return {
    text: `${head}${indent}${lines.join(`\n${indent}`)},\n${indentAt(text, parent.offset)}${text.slice(close)}`,
    line: lineAt(head) + lines.length - 1,
  };
}

function hasComma(text: string): boolean {
  const scanner = createScanner(text, true);
  scanner.scan();
  return text[scanner.getTokenOffset()] === ",";
}

const lineAt = (head: string) => head.split("\n").length;

function indentAt(text: string, offset: number): string {
  const line = text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset);
  return /^[ \t]*/.exec(line)?.[0] ?? "";
}

/** The indentation unit of a text: tabs, four spaces if all lines use multiples of them, or two. */
export function unitOf(text: string): string {
  const indents = Array.from(text.matchAll(/\n([ \t]+)[^\s]/g), ([, indent = ""]) => indent);
  if (indents[0]?.startsWith("\t")) return "\t";
  return indents.length > 0 && indents.every((indent) => indent.length % 4 === 0) ? "    " : "  ";
}
