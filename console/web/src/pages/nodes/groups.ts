import type { Node } from "@/api";
import { type Around, attentionOf } from "@/nodes";
import { text } from "@/text";
import type { Group } from "@/ui";

const t = text.nodes.groups;

/** Two groups: the nodes that need attention, and all others. */
export function attentionGroups(rows: readonly Node[], around: Around): Group<Node>[] {
  const [attention, rest]: [Node[], Node[]] = [[], []];
  for (const node of rows) (attentionOf(node, around) ? attention : rest).push(node);
  return [
    { id: "attention", title: t.attention, note: t.attentionWhy, rows: attention },
    { id: "rest", title: attention.length > 0 ? t.rest : "", rows: rest },
  ];
}
