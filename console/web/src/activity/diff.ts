import type { Change } from "@/api";
import { entry, printable, text } from "@/text";
import type { Preferences } from "@/ui/preferences";
import { dateTime } from "@/ui/time";

/** One field of an object, before and after, as lines. A list has one line per item. */
export interface Difference {
  field: string;
  before: string[];
  after: string[];
}

/** Fields that change with every write, or that repeat another field. */
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

/**
 * The differences between before and after, with times in the given time zone. For a created or deleted object, all its
 * fields.
 */
export function differences(
  { before, after }: Pick<Change, "before" | "after">,
  zone: Preferences["timeZone"] = "utc",
): Difference[] {
  const was = (before ?? {}) as Record<string, unknown>;
  const is = (after ?? {}) as Record<string, unknown>;
  const all: Difference[] = [];
  for (const name of new Set([...Object.keys(was), ...Object.keys(is)])) {
    if (noise.has(name)) continue;
    // The name of a node is its given name; the field "name" is its hostname.
    if (name === "name" && ("givenName" in was || "givenName" in is)) continue;
    const [a, b] = [valueWords(was[name], zone), valueWords(is[name], zone)];
    if (a.join("\n") !== b.join("\n"))
      all.push({ field: entry(text.activity.fields, name) ?? spoken(name), before: a, after: b });
  }
  return all;
}

/** Turns `appliedVersion` into "Applied version". */
function spoken(name: string): string {
  const words = printable(name).replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A time as the API writes it. */
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

/** A value as lines of text; none for an empty value. */
function valueWords(value: unknown, zone: Preferences["timeZone"]): string[] {
  if (value === null || value === undefined || value === "" || value === false) return [];
  if (value === true) return [text.activity.yes];
  if (Array.isArray(value)) return value.flatMap((item) => valueWords(item, zone));
  if (typeof value === "object") {
    const members = Object.entries(value);
    if (members.every(([, member]) => typeof member === "number"))
      return members.map(([member, figure]) => `${printable(member)}: ${figure}`);
    const { name } = value as { name?: unknown };
    return [typeof name === "string" ? printable(name) : printable(JSON.stringify(value), 400)];
  }
  const said = String(value);
  if (time.test(said)) return [dateTime(said, zone)];
  return [entry(text.nodes.joinedBy, said) ?? printable(said, 400)];
}
