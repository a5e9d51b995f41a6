import { queryOptions } from "@tanstack/react-query";
import { api, keys, type PolicyVersion } from "@/api";

/** How many lines a unified diff adds and removes. */
export function diffSize(diff: string): { added: number; removed: number } {
  const lines = diff.split("\n").slice(2);
  return {
    added: lines.filter((line) => line.startsWith("+")).length,
    removed: lines.filter((line) => line.startsWith("-")).length,
  };
}

/** All versions of the policy, newest first, without their texts. */
export const versionsQuery = queryOptions({
  queryKey: [...keys.policyVersions, "all"],
  queryFn: async ({ signal }): Promise<PolicyVersion[]> => {
    const all: PolicyVersion[] = [];
    for (;;) {
      const before = all.at(-1)?.version;
      const { versions } = await api.get("/api/v1/policy/versions", { query: { before }, signal });
      all.push(...versions);
      if (versions.length === 0 || versions.at(-1)?.version === "1") return all;
    }
  },
});

/**
 * The difference between a version and another, by default the previous one. The changed lines are fixed; the pairs are
 * computed for the current nodes.
 */
export const stepQuery = (version: string, effect: boolean, from?: string) =>
  queryOptions({
    queryKey: ["policyStep", version, effect, from],
    queryFn: ({ signal }) => api.get("/api/v1/policy/diff", { query: { from, to: version, effect }, signal }),
  });
