import { parse } from "jsonc-parser";
import type { ApiKey, Node, Policy } from "@/api";
import type { Right } from "@/api/session";
import { subnetsOf } from "@/nodes";

export type StepName = "https" | "policy" | "apiKey" | "backups" | "tags" | "router";

export interface Step {
  name: StepName;
  done: boolean;
}

/** What the steps are derived from. Fields are undefined until their data has loaded, or if a key may not see it. */
export interface StepFacts {
  now: number;
  /** The URL that devices use. */
  server: string;
  /** Whether this page was loaded over HTTPS, or from the same machine. */
  secure: boolean;
  /** Whether the person has ticked that backups are set up, which the server does not know. */
  backups: boolean;
  nodes: readonly Node[] | undefined;
  policy: Policy | null | undefined;
  apiKeys: readonly ApiKey[] | undefined;
  may(right: Right): boolean;
}

/**
 * The steps that the session may take, and whether each is done. The list is empty until that is known. HTTPS and
 * backups are set up on the server itself, for which the API has no permission: they are shown to those who may create
 * API keys.
 */
export function stepsOf({ now, server, secure, backups, nodes, policy, apiKeys, may }: StepFacts): Step[] {
  const runsServer = may("apikeys:write");
  const steps: [name: StepName, offered: boolean, done: boolean | undefined][] = [
    ["https", runsServer, secure && server.startsWith("https:")],
    ["policy", may("policy:write"), policy === undefined ? undefined : policy !== null && !allowsAll(policy.policy)],
    ["apiKey", runsServer, apiKeys && apiKeys.filter((key) => isFullAdmin(key, now)).length > 1],
    ["backups", runsServer, backups],
    ["tags", may("nodes:write"), nodes?.some((node) => node.tags.length > 0)],
    ["router", may("routes:write") && may("nodes:read"), nodes?.some((node) => subnetsOf(node).length > 0)],
  ];
  const offered = steps.filter(([, offered]) => offered);
  return offered.every(([, , done]) => done !== undefined)
    ? offered.map(([name, , done]) => ({ name, done: done === true }))
    : [];
}

const isFullAdmin = (key: ApiKey, now: number) =>
  key.role === "admin" && key.scopes.length === 0 && !key.expired && Date.parse(key.expiration) > now;

const has = (value: unknown, word: string) => Array.isArray(value) && value.includes(word);

/** Whether a policy allows every node to reach every other one, as without a policy. */
export function allowsAll(policy: string): boolean {
  const root = (parse(policy, [], { allowTrailingComma: true }) ?? {}) as Record<string, unknown>;
  if (!root.acls && !root.grants) return true;
  const rules = (list: unknown) => (Array.isArray(list) ? (list as (Record<string, unknown> | null)[]) : []);
  return (
    rules(root.acls).some((rule) => has(rule?.src, "*") && has(rule?.dst, "*:*") && !rule?.proto) ||
    rules(root.grants).some((rule) => has(rule?.src, "*") && has(rule?.dst, "*") && has(rule?.ip, "*") && !rule?.via)
  );
}
