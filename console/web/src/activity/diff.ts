import type { Change } from "@/api";
import { entry, printable, text } from "@/text";

/** One member of an object, before and after, in lines: a list has one for each of its members. */
export interface Difference {
  field: string;
  before: string[];
  after: string[];
}

/** What changes with everything, or says again what another member says. */
const noise = new Set([
  "id",
  "createdAt",
  "updatedAt",
  "lastSeen",
  "online",
  "forcedTags",
  "validTags",
  "invalidTags",
  "preAuthKey",
  "createdBy",
  "machineKey",
  "discoKey",
  "profilePicUrl",
  "providerId",
  "nodeCount",
  "uses",
  "used",
  "lastUsed",
  "lastUsedFrom",
]);

/** What differs between before and after; of what was created or deleted, what it is or was. */
export function differences({ before, after }: Pick<Change, "before" | "after">): Difference[] {
  const was = (before ?? {}) as Record<string, unknown>;
  const is = (after ?? {}) as Record<string, unknown>;
  const all: Difference[] = [];
  for (const name of new Set([...Object.keys(was), ...Object.keys(is)])) {
    if (noise.has(name)) continue;
    const [a, b] = [valueWords(was[name]), valueWords(is[name])];
    if (a.join("\n") !== b.join("\n"))
      all.push({ field: entry(text.activity.fields, name) ?? spoken(name), before: a, after: b });
  }
  return all;
}

/** `appliedVersion` is "Applied version". */
function spoken(name: string): string {
  const words = printable(name).replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A value in words; no lines for nothing. */
export function valueWords(value: unknown): string[] {
  if (value === null || value === undefined || value === "" || value === false) return [];
  if (value === true) return [text.activity.yes];
  if (Array.isArray(value)) return value.flatMap(valueWords);
  if (typeof value === "object") {
    const members = Object.entries(value);
    if (members.every(([, member]) => typeof member === "number"))
      return members.map(([member, figure]) => `${printable(member)}: ${figure}`);
    const { name } = value as { name?: unknown };
    return [typeof name === "string" ? printable(name) : printable(JSON.stringify(value), 400)];
  }
  return [printable(String(value), 400)];
}
