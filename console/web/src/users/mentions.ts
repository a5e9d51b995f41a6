import { type Node as Json, parseTree } from "jsonc-parser";

/** Where a policy names a user. */
export interface Mention {
  /** The part of the policy: groups, acls, ssh and so on. */
  section: string;
  /** The name of the group or tag, if it is one. */
  name: string;
  /** From 1. */
  line: number;
}

interface Named {
  name: string;
  email: string;
}

export interface Mentions {
  /** The groups that list a user. */
  groups(user: Named): Mention[];
  /** Everything that names a user directly, once for each rule, group or tag. */
  all(user: Named): Mention[];
}

/** The fields of a rule that contain principals. The users of an SSH rule are users of the destination's system. */
const principals = new Set(["src", "dst", "accept", "deny", "target", "ports"]);
/** Objects that map names to lists of principals. */
const byName = new Set(["groups", "tagOwners"]);

/**
 * Reads who is named where in a policy. `ana`, `ana@` and her e-mail address are the same person, with or without ports
 * after them, case-insensitively. A text that cannot be parsed names nobody.
 */
export function readMentions(policy: string): Mentions {
  const found = new Map<string, Mention[]>();
  const lineOf = lineCounter(policy);
  const add = (value: Json, mention: Omit<Mention, "line">, at: Json) => {
    if (typeof value.value !== "string") return;
    for (const key of keysOf(value.value)) {
      const before = found.get(key) ?? [];
      const line = lineOf(at.offset);
      if (before.some((m) => m.section === mention.section && m.line === line)) continue;
      found.set(key, [...before, { ...mention, line }]);
    }
  };
  for (const [section, content] of membersOf(parseTree(policy))) {
    if (byName.has(section)) {
      for (const [name, list, member] of membersOf(content)) {
        for (const value of list.children ?? []) add(value, { section, name }, member);
      }
    } else if (section === "autoApprovers") {
      for (const value of stringsIn(content)) add(value, { section, name: "" }, value);
    } else if (content.type === "array") {
      for (const rule of content.children ?? []) {
        for (const [member, list] of membersOf(rule)) {
          if (principals.has(member) || (member === "users" && section === "acls"))
            for (const value of stringsIn(list)) add(value, { section, name: "" }, rule);
        }
      }
    }
  }
  const all = (user: Named) => {
    const keys = [user.name.toLowerCase(), user.email.toLowerCase()].filter(Boolean);
    const mentions = keys.flatMap((key) => found.get(key) ?? []);
    return mentions.filter((m, i) => mentions.findIndex((o) => o.section === m.section && o.line === m.line) === i);
  };
  return { all, groups: (user) => all(user).filter((mention) => mention.section === "groups") };
}

/** The keys of a principal: its text, and its text without ports, both without the trailing @. */
function keysOf(text: string): string[] {
  const whole = text.toLowerCase();
  const before = whole.replace(/:[^:]*$/, "");
  return [...new Set([whole, before].map((word) => word.replace(/@$/, "")))];
}

function membersOf(object: Json | undefined): [string, Json, Json][] {
  return (object?.type === "object" ? (object.children ?? []) : []).flatMap((member): [string, Json, Json][] => {
    const [name, value] = member.children ?? [];
    return name && value ? [[String(name.value), value, member]] : [];
  });
}

function stringsIn(value: Json): Json[] {
  if (value.type === "string") return [value];
  if (value.type === "object") return membersOf(value).flatMap(([, inner]) => stringsIn(inner));
  return (value.children ?? []).flatMap(stringsIn);
}

function lineCounter(text: string): (offset: number) => number {
  const ends: number[] = [];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) ends.push(at);
  return (offset) => {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle] ?? 0) < offset) low = middle + 1;
      else high = middle;
    }
    return low + 1;
  };
}
