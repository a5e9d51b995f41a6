import type { PolicyEffect } from "@/api";
import { printable, text } from "@/text";

const t = text.nodes.tagEffect;
const mostNames = 3;

type Shift = PolicyEffect["shifts"][number];

/** How new tags would change a node's access, in both directions: one sentence per change. */
export function effectWords(effect: PolicyEffect, nodeId: string): { words: string; loss: boolean }[] {
  return effect.shifts.flatMap((shift) => [
    ...(shift.gained.length > 0 ? [{ words: sentence(shift, nodeId, "gained"), loss: false }] : []),
    ...(shift.lost.length > 0 ? [{ words: sentence(shift, nodeId, "lost"), loss: true }] : []),
  ]);
}

function sentence(shift: Shift, nodeId: string, how: "gained" | "lost"): string {
  const inward = shift.samples[0]?.to.id === nodeId;
  const { names, count } = inward ? shift.from : shift.to;
  const some = names.slice(0, mostNames).map((name) => printable(name));
  const whom = count > some.length ? [...some, t.others(count - some.length)] : some;
  return t[inward ? "inward" : "outward"][how](shift.pairs, whom.join(", "), shift[how].join(", "));
}
