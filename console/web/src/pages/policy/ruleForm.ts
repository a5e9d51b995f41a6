import { ipv4Of } from "@/nodes/facts";
import type { RuleEntry } from "@/policy/edits";
import { destinationOf } from "@/policy/tests";
import { policyForms } from "@/text/en/policyForms";
import type { Document } from "./document";
import { fits, type Network } from "./names";

export interface RuleInput {
  who: readonly string[];
  what: readonly string[];
  ports: string;
  proto: string;
  comment: string;
}

const t = policyForms.rule;

/** The rule that a form describes; null if a field is missing or wrong, which the field shows. */
export function ruleOf({ who, what, ports, proto, comment }: RuleInput): {
  rule: RuleEntry | null;
  errors: { who?: string; what?: string; ports?: string };
} {
  const spec = proto === "icmp" ? "*" : portsOf(ports);
  const errors = {
    ...(who.length === 0 && { who: t.missing }),
    ...(what.length === 0 && { what: t.missing }),
    ...(spec === null && { ports: t.badPorts }),
  };
  if (spec === null || Object.keys(errors).length > 0) return { rule: null, errors };
  const words = comment.trim().replace(/\s+/g, " ");
  return {
    rule: {
      src: [...who],
      dst: what.map((name) => destinationOf(name, spec)),
      ...(proto && { proto }),
      ...(words && { comment: words }),
    },
    errors,
  };
}

/** Nodes whose name contains a text in lower case, as suggestions. */
export const nodesNamed = (typed: string, { nodes }: Network) =>
  typed === ""
    ? []
    : nodes
        .filter((node) => node.givenName.toLowerCase().includes(typed))
        .map((node) => ({ value: node.givenName, note: ipv4Of(node) }));

/** What a rule uses for a typed name. Rules cannot name nodes, so a node is represented by all its addresses. */
export function inPolicy(name: string, document: Document, { nodes, users }: Network): string[] {
  if (document.hosts.has(name) || users.some((user) => fits(user, name))) return [name];
  return nodes.find((node) => node.givenName.toLowerCase() === name.toLowerCase())?.ipAddresses ?? [name];
}

/** Ports in the syntax of rules; all if the field is empty, null if they are invalid. */
export function portsOf(typed: string): string | null {
  const text = typed.trim();
  if (text === "" || text === "*") return "*";
  const ranges = text.split(/[\s,]+/).filter(Boolean);
  const valid = (port: number | undefined) => port !== undefined && port >= 1 && port <= 65535;
  const right = ranges.every((range) => {
    const [, first, last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(range) ?? [];
    return first !== undefined && valid(Number(first)) && valid(Number(last)) && Number(first) <= Number(last);
  });
  return right ? ranges.join(",") : null;
}
