import type { Change, Node } from "@/api";
import { printable, text } from "@/text";
import { type EventWords, eventWords } from "./words";

/** One change, or several similar ones that happened together. */
export interface EventGroup {
  /** Newest first; never empty. */
  entries: [Change, ...Change[]];
  words: EventWords;
}

const together = 5 * 60_000;

/**
 * Groups similar changes by the same actor within five minutes, whatever else happened in between. Newest first; each
 * group is placed where its newest change is. All devices count as one actor, because each acts for itself.
 */
export function groupEvents(entries: readonly Change[]): EventGroup[] {
  const groups: EventGroup[] = [];
  const open = new Map<string, EventGroup>();
  for (const entry of entries) {
    const words = eventWords(entry);
    const key = `${words.sort} ${entry.actor.kind} ${entry.actor.kind === "node" ? "" : entry.actor.id}`;
    const group = open.get(key);
    if (group && Date.parse(group.entries[0].at) - Date.parse(entry.at) <= together) {
      group.entries.push(entry);
    } else {
      const begun: EventGroup = { entries: [entry], words };
      open.set(key, begun);
      groups.push(begun);
    }
  }
  for (const group of groups) {
    if (group.entries.length > 1) group.words = { ...group.words, title: manyWords(group) };
  }
  return groups;
}

function manyWords({ entries, words }: EventGroup): string {
  return text.activity.many[words.sort](entries.length, commonTag(entries));
}

/** The tag that all nodes of a group have in common, without its prefix; empty if there is none. */
function commonTag(entries: readonly Change[]): string {
  const tags = entries.map((entry) => ((entry.after ?? entry.before) as Node | null)?.tags ?? []);
  const shared = tags[0]?.filter((tag) => tags.every((each) => each.includes(tag))) ?? [];
  return printable(shared[0]?.replace(/^tag:/, "") ?? "");
}
