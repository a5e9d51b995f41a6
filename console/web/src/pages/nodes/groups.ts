import type { Node } from "@/api";
import { type Around, needsAttention } from "@/nodes";
import { text } from "@/text";
import type { Group } from "@/ui";

const t = text.nodes.groups;
const most = 8;

/** Two groups: nodes that need attention, at most eight of them until more are requested, and all others. */
export function attentionGroups(
  rows: readonly Node[],
  around: Around,
  all: boolean,
  onShowAll: () => void,
): Group<Node>[] {
  const attention = rows.filter((node) => needsAttention(node, around));
  const shown = all ? attention : attention.slice(0, most);
  const here = new Set(shown);
  return [
    { id: "attention", title: t.attention, note: t.attentionWhy, rows: shown, total: attention.length, onShowAll },
    { id: "rest", title: shown.length > 0 ? t.rest : "", rows: rows.filter((node) => !here.has(node)) },
  ];
}
