import { parse } from "jsonc-parser";
import { useMemo } from "react";
import { usePolicy } from "@/api";

/** What a policy says about tags. */
export interface PolicyTags {
  /** Tags that have owners, sorted. */
  known: string[];
  /** Whether any tag may be assigned, because there is no policy. */
  anyTag?: boolean;
  /** Tags with which a node can reach everything, or has its routes approved automatically. */
  powerful: string[];
  /** Tags that some rule names. With "*" among them, rules apply to every node. */
  ruled: string[];
}

const lines = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((line): line is string => typeof line === "string") : [];
const members = (value: unknown): [string, unknown][] =>
  value !== null && typeof value === "object" ? Object.entries(value) : [];
const isTag = (name: string) => name.startsWith("tag:");

/** Reads the tags of a policy; ignores what it cannot parse. */
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

/** The tag that a source or destination of a rule names, without its ports; "*" if it includes nodes with any tag. */
function ruledTag(end: string): string[] {
  if (end === "*" || end.startsWith("*:") || /^autogroup:(tagged|danger-all)(:|$)/.test(end)) return ["*"];
  // Ports never start with a letter; the parts of a tag always do.
  const tag = /^tag:[^:]+(:[a-zA-Z][^:]*)*/.exec(end)?.[0];
  return tag ? [tag] : [];
}

/** The tags of a node that no rule names; none if some rule applies to the node. */
export const unruledTags = ({ ruled }: PolicyTags, tags: readonly string[]) =>
  ruled.includes("*") || tags.some((tag) => ruled.includes(tag)) ? [] : [...tags];

/** What the policy in force says about tags; undefined while that is unknown. */
export function usePolicyTags(): PolicyTags | undefined {
  const { data } = usePolicy();
  return useMemo(() => {
    if (!data) return undefined;
    // Without a policy, no tags are known and everyone can reach everyone.
    return data.policy ? policyTags(data.policy.policy) : { known: [], anyTag: true, powerful: [], ruled: ["*"] };
  }, [data]);
}

/** The tags that have owners; undefined while that is unknown, and where any tag is allowed. */
export function useOwnedTags(): ReadonlySet<string> | undefined {
  const tags = usePolicyTags();
  return useMemo(() => (tags && !tags.anyTag ? new Set(tags.known) : undefined), [tags]);
}
