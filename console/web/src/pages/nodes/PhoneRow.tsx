import type { Node } from "@/api";
import { type Around, ipv4Of, NodeMark, NodeMenu, ownerWords } from "@/nodes";
import { printable, text } from "@/text";
import { Flash, Time } from "@/ui";
import { Attention, NodeLink } from "./columns";

/** A node on a phone, in two lines. */
export function PhoneRow({ node, around, onOpen }: { node: Node; around: Around; onOpen(node: Node): void }) {
  return (
    <div className="flex w-full min-w-0 items-center gap-3">
      <Flash value={node.online} className="grid shrink-0 place-items-center rounded-full">
        <NodeMark node={node} />
      </Flash>
      <div className="min-w-0 flex-1">
        <NodeLink node={node} onOpen={onOpen} className="block truncate text-14 font-medium" />
        <div className="flex gap-2 text-12 text-ink-2">
          <span className="font-mono">{ipv4Of(node)}</span>
          <span className="truncate">{printable(ownerWords(node))}</span>
        </div>
      </div>
      <Attention node={node} around={around} />
      {!node.expired && (
        <span className="text-12 text-ink-3">
          {node.online ? text.common.now : <Time at={node.lastSeen} focusable={false} />}
        </span>
      )}
      <NodeMenu node={node} />
    </div>
  );
}
