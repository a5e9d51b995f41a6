import { parseTree, type Node as Tree } from "jsonc-parser";
import type { PolicyTestFailure } from "@/api";
import { placesIn } from "./problems";

/** The content of a policy's text, as far as it can be parsed. */
export interface Document {
  groups: Map<string, string[]>;
  hosts: Map<string, string>;
  tags: string[];
  rules: Entry[];
  tests: TestLine[];
  /** The strings of the text that name people, or might. */
  people: { text: string; line: number; column: number }[];
}

interface Entry {
  /** Without comments and whitespace, for comparison. */
  meaning: string;
  list: string;
  line: number;
  src: string[];
  dst: string[];
  proto: string;
}

export interface TestLine {
  line: number;
  src: string;
  accept: string[];
  deny: string[];
  /** The destinations of an SSH test. */
  dst: string[];
}

const lists = ["acls", "grants", "ssh", "nodeAttrs"];

function plain(tree: Tree | undefined): unknown {
  if (!tree) return undefined;
  if (tree.type === "array") return (tree.children ?? []).map(plain);
  if (tree.type !== "object") return tree.value;
  return Object.fromEntries((tree.children ?? []).map(({ children = [] }) => [children[0]?.value, plain(children[1])]));
}

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((v) => typeof v === "string") : typeof value === "string" ? [value] : [];

export function readDocument(text: string): Document {
  const root = parseTree(text, [], { allowTrailingComma: true });
  const placeAt = placesIn(text);
  const members = new Map<string, Tree | undefined>();
  for (const { children } of root?.type === "object" ? (root.children ?? []) : []) {
    members.set(String(children?.[0]?.value), children?.[1]);
  }
  const entries = (name: string) => members.get(name)?.children ?? [];
  const named = (name: string) =>
    Object.entries((members.get(name)?.type === "object" && (plain(members.get(name)) as object)) || {});
  return {
    groups: new Map(named("groups").map(([group, people]) => [group, texts(people)])),
    hosts: new Map(named("hosts").map(([host, address]) => [host, String(address)])),
    tags: named("tagOwners").map(([tag]) => tag),
    rules: lists.flatMap((list) =>
      entries(list).map((tree) => {
        const rule = plain(tree) as Record<string, unknown> | undefined;
        return {
          meaning: `${list} ${JSON.stringify(rule)}`,
          list,
          line: placeAt(tree.offset).line,
          src: texts(rule?.src),
          dst: texts(rule?.dst),
          proto: String(rule?.proto ?? rule?.ip ?? ""),
        };
      }),
    ),
    tests: ["tests", "sshTests"].flatMap((list) =>
      entries(list).map((tree) => {
        const test = (plain(tree) ?? {}) as Record<string, unknown>;
        return {
          line: placeAt(tree.offset).line,
          src: texts(test.src).join(" "),
          accept: [...texts(test.accept), ...texts(test.check)],
          deny: texts(test.deny),
          dst: texts(test.dst),
        };
      }),
    ),
    people: ["groups", "tagOwners", ...lists].flatMap((list) =>
      stringsIn(members.get(list))
        .filter(({ value }) => value.includes("@"))
        .map(({ value, offset }) => ({ text: value, ...placeAt(offset) })),
    ),
  };
}

function stringsIn(tree: Tree | undefined): { value: string; offset: number }[] {
  if (tree?.type === "string") return [{ value: String(tree.value), offset: tree.offset }];
  return (tree?.children ?? []).flatMap(stringsIn);
}

/** How many rules differ between two texts: changed, added and removed. */
export function rulesChanged(before: Document, after: Document): number {
  const counts = new Map<string, number>();
  for (const { meaning } of before.rules) counts.set(meaning, (counts.get(meaning) ?? 0) + 1);
  for (const { meaning } of after.rules) counts.set(meaning, (counts.get(meaning) ?? 0) - 1);
  let gone = 0;
  let come = 0;
  for (const count of counts.values()) {
    gone += Math.max(0, count);
    come -= Math.min(0, count);
  }
  return Math.max(gone, come);
}

/** The tests of the text, each with the failures that the server reports for it. */
export function testResults(tests: readonly TestLine[], failures: readonly PolicyTestFailure[]) {
  return tests.map((test) => ({ ...test, failures: failures.filter((failure) => failure.line === test.line) }));
}
