import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { keys, type Node, useCan } from "@/api";
import { printable, text } from "@/text";
import { ApiCall, useStatus } from "@/ui";
import { useNodeWrites } from "./writes";

interface Told {
  /** The message for a single node, instead of how many succeeded. */
  done?: string;
  failed?: string;
  /** Undoes the action, if that is possible. */
  undo?(): void;
}

const mostReasons = 3;

/** Why an action failed for nodes, in one line. */
export function reasons(failed: readonly { node: Node; why: string }[]): string {
  const words = failed.slice(0, mostReasons).map(({ node, why }) => `${printable(node.givenName)}: ${why}`);
  if (failed.length > mostReasons) words.push(text.nodes.many.more(failed.length - mostReasons));
  return words.join(" · ");
}

/** Applies the action to all nodes, and reports which ones failed and why, with an option to retry these. */
export function useBulk(onClose: () => void) {
  const writes = useNodeWrites();
  const status = useStatus();
  const [busy, setBusy] = useState(false);
  const client = useQueryClient();
  const follows = useCan()("history:read");
  const t = text.nodes.many;
  const start = async (
    nodes: readonly Node[],
    action: Parameters<typeof writes.bulk>[1],
    tags?: string[],
    told: Told = {},
  ) => {
    setBusy(true);
    try {
      const failed = await writes.bulk(nodes, action, tags);
      const again = failed.map(({ node }) => node);
      const retry = { label: t.retry(again.length), run: () => void start(again, action, tags, told) };
      if (failed.length === 0) status.done(told.done ?? t.done[action](nodes.length), told.undo);
      else if (told.failed) status.failed(told.failed, failed[0]?.why, { ...retry, label: text.common.retry });
      else status.failed(t.partly(nodes.length - failed.length, failed.length), reasons(failed), retry);
    } catch (error) {
      status.failed(told.failed ?? t.failed, error);
    }
    // Without the stream, nothing else would report the change.
    if (!follows) void client.invalidateQueries({ queryKey: keys.nodes });
    setBusy(false);
    onClose();
  };
  return { busy, start };
}

/** Reports whether a change to many nodes could be undone. */
export function useUndoReport(words: { undoneMany(nodes: number): string; undoFailed: string }) {
  const status = useStatus();
  return async (undoing: Promise<{ done: number; failed: readonly { why: string }[] }>) => {
    try {
      const { done, failed } = await undoing;
      if (failed.length > 0) status.failed(words.undoFailed, failed[0]?.why);
      else status.done(words.undoneMany(done));
    } catch (error) {
      status.failed(words.undoFailed, error);
    }
  };
}

export const BulkCall = ({ nodes, action, tags }: { nodes: readonly Node[]; action: string; tags?: string[] }) => (
  <ApiCall method="post" path="/api/v1/node/bulk" body={{ ids: nodes.map((node) => node.id), action, tags }} />
);
