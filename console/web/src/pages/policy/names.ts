import type { Node, User } from "@/api";
import { entry } from "@/text";
import { words } from "@/text/policy";
import type { Document } from "./document";

/** The network that the names in a policy refer to. */
export interface Network {
  nodes: readonly Node[];
  users: readonly User[];
}

const autogroups = [
  "autogroup:member",
  "autogroup:admin",
  "autogroup:tagged",
  "autogroup:self",
  "autogroup:internet",
  "autogroup:danger-all",
  "autogroup:nonroot",
];

/** A user in the format of a policy: a name that is not an e-mail address ends in @. */
export const personOf = (name: string) => (name.includes("@") ? name : `${name}@`);

/** Whether a name in a policy refers to this user. */
export const fits = (user: { name: string; email?: string }, name: string) =>
  personOf(user.name) === name || user.name === name || (!!user.email && user.email === name);

/** The nodes that a name in the policy refers to now; undefined if it does not refer to nodes. */
export function nodesOf(name: string, document: Document, { nodes }: Network): Node[] | undefined {
  if (name === "*") return [...nodes];
  if (name.startsWith("tag:")) return nodes.filter((node) => node.tags.includes(name));
  if (name === "autogroup:member") return nodes.filter((node) => node.tags.length === 0);
  if (name === "autogroup:tagged") return nodes.filter((node) => node.tags.length > 0);
  const people = name.startsWith("group:") ? document.groups.get(name) : name.includes("@") ? [name] : undefined;
  return (
    people && nodes.filter((node) => node.tags.length === 0 && people.some((p) => node.user && fits(node.user, p)))
  );
}

/** The name in a string of the policy, without its ports: tag:db for "tag:db:5432". */
export function nameIn(literal: string): string {
  const found = /^((?:tag|group|autogroup):[^:]+|\*|[^:]*@[^:]*|[\w.-]+)(?::[\d*,-]+)?$/.exec(literal);
  return found?.[1] ?? literal;
}

/** What a string of the policy refers to now, in words; null if there is nothing to say. */
export function meaningOf(
  literal: string,
  document: Document,
  network: Network,
): { name: string; says: string } | null {
  const name = nameIn(literal);
  const host = document.hosts.get(name);
  if (host !== undefined) return { name, says: words.hover.host(host) };
  const about = autogroups.includes(name) ? words.hover.autogroups[name] : undefined;
  const nodes = nodesOf(name, document, network);
  if (!nodes) return about ? { name, says: about } : null;
  const online = nodes.filter((node) => node.online).length;
  const count = words.hover.nodes(nodes.length, online);
  if (name.startsWith("group:")) {
    return { name, says: words.hover.group(document.groups.get(name)?.length ?? 0, count) };
  }
  if (name.startsWith("tag:") && !document.tags.includes(name))
    return { name, says: words.hover.tagWithoutOwner(count) };
  if (name.includes("@") && !network.users.some((user) => fits(user, name)))
    return { name, says: words.hover.stranger };
  return { name, says: about ? `${about} ${count}` : count };
}

export interface Suggestion {
  label: string;
  detail?: string;
  /** Whether it is a field name, which is inserted with its colon. */
  member?: boolean;
}

const members: Record<string, string[]> = {
  "": [
    "groups",
    "hosts",
    "tagOwners",
    "acls",
    "grants",
    "ssh",
    "tests",
    "sshTests",
    "autoApprovers",
    "nodeAttrs",
    "randomizeClientPort",
  ],
  acls: ["action", "proto", "src", "dst", "comment"],
  grants: ["src", "dst", "ip", "app", "via", "comment"],
  ssh: ["action", "src", "dst", "users", "checkPeriod", "acceptEnv", "comment"],
  tests: ["src", "proto", "accept", "deny", "comment"],
  sshTests: ["src", "dst", "accept", "check", "deny", "comment"],
  nodeAttrs: ["target", "attr", "comment"],
  autoApprovers: ["routes", "exitNode"],
};

/** Ports with well-known names. */
const ports: [string, string][] = [
  ["22", "SSH"],
  ["53", "DNS"],
  ["80", "HTTP"],
  ["443", "HTTPS"],
  ["3306", "MySQL"],
  ["3389", "RDP"],
  ["5432", "PostgreSQL"],
  ["6379", "Redis"],
  ["9100", "node exporter"],
  ["*", ""],
];

/**
 * Completions for a position in the policy. The path consists of names and indexes; the last is what is being typed.
 */
export function suggestionsAt(
  path: readonly (string | number)[],
  atMember: boolean,
  typed: string,
  document: Document,
  network: Network,
): Suggestion[] {
  const [list = "", , field = ""] = path;
  if (atMember) return membersAt(path, document, network);
  const withPorts = (list === "acls" && field === "dst") || (list === "tests" && field !== "src" && field !== "proto");
  if (withPorts) {
    const name = nameIn(typed.replace(/:[^:]*$/, ""));
    const rest = typed.slice(name.length);
    const target = list === "tests" ? ports.slice(0, -1) : ports;
    if (rest.startsWith(":") && name !== "tag" && name !== "group" && name !== "autogroup") {
      return target.map(([port, what]) => ({ label: `${name}:${port}`, detail: what }));
    }
  }
  return valuesAt(list, field, path, document, network);
}

function membersAt(path: readonly (string | number)[], document: Document, network: Network): Suggestion[] {
  const [list = ""] = path;
  const named = (labels: readonly string[]) => labels.map((label) => ({ label, member: true }));
  if (path.length <= 1) return named(members[""] ?? []);
  if (list === "tagOwners") {
    const carried = new Set(network.nodes.flatMap((node) => node.tags));
    return named([...carried].filter((tag) => !document.tags.includes(tag)).sort());
  }
  if (list === "groups" || list === "hosts") return [];
  return named(entry(members, String(list)) ?? []);
}

function valuesAt(
  list: string | number,
  field: string | number,
  path: readonly (string | number)[],
  document: Document,
  network: Network,
): Suggestion[] {
  const people = network.users.map((user) => ({ label: personOf(user.name), detail: words.completion.user }));
  const groups = [...document.groups.keys()].map((label) => ({ label, detail: words.completion.group }));
  const tags = [...new Set([...document.tags, ...network.nodes.flatMap((node) => node.tags)])]
    .sort()
    .map((label) => ({ label, detail: words.hover.short(nodesOf(label, document, network)?.length ?? 0) }));
  const hosts = [...document.hosts].map(([label, detail]) => ({ label, detail }));
  const auto = autogroups
    .filter((name) => name !== "autogroup:nonroot")
    .map((label) => ({ label, detail: words.completion.autogroup }));
  if (list === "groups") return people;
  if (list === "tagOwners")
    return [...groups, ...people, ...tags, { label: "autogroup:member" }, { label: "autogroup:admin" }];
  if (field === "action") return (list === "ssh" ? ["accept", "check"] : ["accept"]).map((label) => ({ label }));
  if (field === "proto") return ["tcp", "udp", "icmp", "sctp"].map((label) => ({ label }));
  if (field === "users" || (list === "sshTests" && field !== "src" && field !== "dst")) {
    return ["root", "autogroup:nonroot"].map((label) => ({ label }));
  }
  if (field === "ip") return ports.map(([label, detail]) => ({ label, detail }));
  if (field === "via") return tags;
  if (list === "autoApprovers") return [...tags, ...groups, ...people];
  if (list === "hosts" || path.length === 1 || field === "comment") return [];
  return [...tags, ...groups, ...people, ...hosts, ...auto, { label: "*" }];
}
