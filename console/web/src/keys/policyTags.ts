import { queryOptions } from "@tanstack/react-query";
import { parse } from "jsonc-parser";
import { ApiError, api, keys } from "@/api";

/** What a policy says of tags. */
export interface PolicyTags {
  /** Those that have owners, in order. */
  known: string[];
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
  const tag = /^tag:[^:]+/.exec(end)?.[0];
  return tag ? [tag] : [];
}

/** The tags, of those of a node, of which no rule speaks; none when some rule speaks of the node. */
export const unruledTags = ({ ruled }: PolicyTags, tags: readonly string[]) =>
  ruled.includes("*") || tags.some((tag) => ruled.includes(tag)) ? [] : [...tags];

export const policyTagsQuery = queryOptions({
  queryKey: [...keys.policy, "tags"],
  queryFn: async ({ signal }): Promise<PolicyTags> => {
    try {
      return policyTags((await api.get("/api/v1/policy", { signal })).policy);
    } catch (error) {
      // Without a policy there are no tags that it knows, and everybody reaches everybody.
      if (error instanceof ApiError && error.status === 404) return { known: [], powerful: [], ruled: ["*"] };
      throw error;
    }
  },
});
