import { queryOptions } from "@tanstack/react-query";
import { keys, type Policy, policyVersionQuery } from "@/api";

/** The maximum number of versions that are read to find out when a rule was added. */
const most = 40;

const strings = '"(?:\\\\.|[^"\\\\])*"';
const spaces = new RegExp(`${strings}|//[^\\n]*|/\\*[\\s\\S]*?\\*/|\\s+`, "g");
const lastCommas = new RegExp(`${strings}|,(?=[}\\]])`, "g");
const keepStrings = (found: string) => (found.startsWith('"') ? found : "");

/** A text without comments and whitespace: texts that differ only in these become equal. */
export const bare = (text: string) => text.replace(spaces, keepStrings).replace(lastCommas, keepStrings);

/**
 * The version that added a rule to the policy, searching backwards from the one in force. If the search stops early, it
 * is the oldest version that was read. Null for a rule that is not in force.
 */
export const sinceQuery = (rule: string, inForce: string) =>
  queryOptions({
    queryKey: [...keys.policyVersions, "since", inForce, rule],
    queryFn: async ({ client }): Promise<{ version: Policy; sure: boolean } | null> => {
      const wanted = bare(rule);
      const newest = Number(inForce);
      let version: Policy | undefined;
      for (let number = newest; number > Math.max(0, newest - most); number--) {
        const older = await client.fetchQuery(policyVersionQuery(String(number)));
        if (!bare(older.policy).includes(wanted)) return version ? { version, sure: true } : null;
        version = older;
      }
      return version ? { version, sure: version.version === "1" } : null;
    },
  });
