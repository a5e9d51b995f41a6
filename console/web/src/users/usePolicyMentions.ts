import { useMemo } from "react";
import { usePolicy } from "@/api";
import { type Mentions, readMentions } from "./mentions";

/** Who is named where in the policy in force; undefined while unknown. */
export function usePolicyMentions(): Mentions | undefined {
  const { data } = usePolicy();
  return useMemo(() => (data === undefined ? undefined : readMentions(data.policy?.policy ?? "")), [data]);
}
