import { parse } from "jsonc-parser";
import { useMemo } from "react";
import { usePolicy } from "@/api";

/** What a policy says of tags. */
export interface PolicyTags {
  /** Those that have owners, in order. */
  known: string[];
  /** There is no policy: administrators may give any tag. */
  anyTag?: boolean;
  /** Those with which a node reaches everything, or has its routes approved without anybody looking. */
  powerful: string[];
  /** Those of which some rule speaks. With "*" among them, rules speak of every node. */
  ruled: string[];
}

const lines = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((line): line is string => typeof line === "string") : [];
const members = (value: unknown): [string, unknown][] =>
  value !== null && typeof value === "object" ? Object.entries(value) : [];
const isTag = (name: string) => name.startsWith("tag:");

/** Reads the tags of a policy; what it cannot read it passes over. */
export function policyTags(policy: string): PolicyTags {
  const root = (parse(policy, [], { allowTrailingComma: true }) ?? {}) as Record<string, unknown>;
  const rules = [root.acls, root.grants].flatMap((list) => (Array.isArray(list) ? list : [])) as Record<
    string,
    unknown
  >[];
  const reachAll = rules
    .filter((rule) => lines(rule?.dst).some((dst) => dst === "*" || dst === "*:*"))
    .flatMap((rule) => lines(rule.src));
  const shells = Array.isArray(root.ssh) ? (root.ssh as Record<string, unknown>[]) : [];
  const spoken = [...rules, ...shells].flatMap((rule) => [...lines(rule?.src), ...lines(rule?.dst)]);
  const approved = members(root.autoApprovers).flatMap(([name, value]) =>
    name === "exitNode" ? lines(value) : members(value).flatMap(([, by]) => lines(by)),
  );
  return {
    known: members(root.tagOwners)
      .map(([tag]) => tag)
      .filter(isTag)
      .sort(),
    ruled: [...new Set(spoken.flatMap(ruledTag))].sort(),
    powerful: [...new Set([...reachAll, ...approved].filter(isTag))].sort(),
  };
}

/** The tag that an end of a rule names, with or without ports. */
function ruledTag(end: string): string[] {
  if (end === "*" || end.startsWith("*:") || /^autogroup:(tagged|danger-all)(:|$)/.test(end)) return ["*"];
  // Ports never begin with a letter, and the parts of a tag do.
  const tag = /^tag:[^:]+(:[a-zA-Z][^:]*)*/.exec(end)?.[0];
  return tag ? [tag] : [];
}

/** The tags, of those of a node, of which no rule speaks; none when some rule speaks of the node. */
export const unruledTags = ({ ruled }: PolicyTags, tags: readonly string[]) =>
  ruled.includes("*") || tags.some((tag) => ruled.includes(tag)) ? [] : [...tags];

/** What the policy in force says of tags; undefined while that is not known. */
export function usePolicyTags(): PolicyTags | undefined {
  const { data } = usePolicy();
  return useMemo(() => {
    if (!data) return undefined;
    // Without a policy there are no tags that it knows, and everybody reaches everybody.
    return data.policy ? policyTags(data.policy.policy) : { known: [], anyTag: true, powerful: [], ruled: ["*"] };
  }, [data]);
}

/** The tags that have owners; undefined while that is not known, and where any tag will do. */
export function useOwnedTags(): ReadonlySet<string> | undefined {
  const tags = usePolicyTags();
  return useMemo(() => (tags && !tags.anyTag ? new Set(tags.known) : undefined), [tags]);
}
