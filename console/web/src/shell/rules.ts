import { type Node as Json, parseTree } from "jsonc-parser";

/** A rule of the policy, as shown in the palette. */
export interface Rule {
  /** From 1. */
  line: number;
  /** "group:ops → tag:db:5432" */
  words: string;
}

const sections = ["acls", "grants", "ssh"];

/** The rules of a policy in their order. If the text has syntax errors, the rules that can be parsed. */
export function rulesOf(policy: string): Rule[] {
  const root = parseTree(policy);
  return sections.flatMap((section) => {
    const list = memberOf(root, section);
    if (list?.type !== "array") return [];
    return (list.children ?? []).map((rule) => ({
      line: policy.slice(0, rule.offset).split("\n").length,
      words: `${listed(memberOf(rule, "src"))} → ${listed(memberOf(rule, "dst"))}`,
    }));
  });
}

function memberOf(object: Json | undefined, name: string): Json | undefined {
  if (object?.type !== "object") return undefined;
  return object.children?.find((member) => member.children?.[0]?.value === name)?.children?.[1];
}

const listed = (list: Json | undefined) => list?.children?.map((item) => String(item.value)).join(", ") ?? "";
