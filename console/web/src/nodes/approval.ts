import type { Node } from "@/api";
import { printable, text } from "@/text";
import { useBulk } from "./bulk";

const t = text.nodes.approval;

/** Approves nodes immediately. Undo withdraws the approval. */
export function useApproveNodes(): (nodes: readonly Node[]) => void {
  const { start } = useBulk(() => {});
  return (nodes) => {
    const name = nodes.length === 1 && nodes[0] ? printable(nodes[0].givenName) : undefined;
    const undone = name ? { done: t.undone(name), failed: t.undoFailed(name) } : {};
    void start(nodes, "approve", undefined, {
      ...(name && { done: t.done(name), failed: t.failed(name) }),
      undo: () => void start(nodes, "withdrawApproval", undefined, undone),
    });
  };
}
