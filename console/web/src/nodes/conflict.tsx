import { useLastChange } from "@/activity/lastChange";
import { text } from "@/text";
import { Button } from "@/ui";

/** A write that found a different value from the one the person saw. */
export interface Conflict {
  /** The ID of the node. */
  of: string;
  /** The changed field. */
  member: string;
  mine: string;
  theirs: string;
}

export function ConflictView({ conflict, onMine, onTheirs }: { conflict: Conflict; onMine(): void; onTheirs(): void }) {
  const t = text.nodes.conflict;
  const last = useLastChange({ kind: "node", object: conflict.of, members: [conflict.member] });
  return (
    <div role="alert" className="space-y-3 rounded-lg border border-line-strong p-3 text-13 text-ink-2">
      <p className="font-medium text-ink">{last ? t.by(last.who, last.when) : t.title}</p>
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
        <dt>{t.mine}</dt>
        <dd className="font-mono break-words whitespace-pre-wrap text-ink">{conflict.mine}</dd>
        <dt>{t.theirs}</dt>
        <dd className="font-mono break-words whitespace-pre-wrap text-ink">{conflict.theirs}</dd>
      </dl>
      <Choice onMine={onMine} onTheirs={onTheirs} />
    </div>
  );
}

/** Lets the person choose whose value to keep. */
export function Choice({ onMine, onTheirs }: { onMine(): void; onTheirs(): void }) {
  return (
    <div className="flex gap-2">
      <Button look="primary" onClick={onMine}>
        {text.nodes.conflict.keepMine}
      </Button>
      <Button onClick={onTheirs}>{text.nodes.conflict.keepTheirs}</Button>
    </div>
  );
}
