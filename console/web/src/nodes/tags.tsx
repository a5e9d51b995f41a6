import { useState } from "react";
import { api, type Node } from "@/api";
import { notATag, tagsOf } from "@/keys/facts";
import { TagField } from "@/keys/TagField";
import { printable, text } from "@/text";
import { ApiCall, Button, Checkbox, Choices, Confirm, Dialog, Warning } from "@/ui";
import { BulkCall, useBulk, useUndoReport } from "./bulk";
import { useSaveMember } from "./member";
import { TagEffect } from "./TagEffect";
import { type Tagging, taggingOf } from "./tagging";
import { useNodeWrites } from "./writes";

const t = text.nodes.tags;
const textOf = (tags: readonly string[]) => [...tags].sort().join(" ");

export function TagsDialog({ node, onClose }: { node: Node; onClose(): void }) {
  // Keep the tags from when the dialog opened, not what the stream has reported since.
  const [before] = useState(node.tags);
  const [typed, setTyped] = useState(before.length > 0 ? `${before.join(" ")} ` : "");
  const tags = tagsOf(typed);
  const problem = tags.length === 0 && before.length > 0 ? t.needsOne : undefined;
  const whole = !problem && !notATag(tags);
  const name = printable(node.givenName);
  const owner = printable(node.user?.name ?? "");
  const owned = before.length === 0;
  const losesOwner = owned && tags.length > 0;
  const [confirmed, setConfirmed] = useState(false);
  const ready = whole && (confirmed || !losesOwner);
  const { submit, conflict } = useSaveMember({
    node,
    member: "tags",
    value: tags,
    ready,
    call: (tags, ifMatch) =>
      api.call("post", "/api/v1/node/{nodeId}/tags", { params: { nodeId: node.id }, body: { tags }, ifMatch }),
    textOf,
    words: {
      done: () => t.done(name),
      // The first tag removes the node from its user, which changing tags cannot undo.
      undone: owned ? undefined : () => t.undone(name),
      failed: () => t.failed(name),
    },
    onClose,
  });
  return (
    <Dialog
      title={t.title(name)}
      onClose={onClose}
      onSubmit={() => submit()}
      footer={
        <>
          <ApiCall method="post" path={`/api/v1/node/${node.id}/tags`} body={{ tags }} />
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button type="submit" look="primary" disabled={!ready}>
            {t.submit}
          </Button>
        </>
      }
    >
      {conflict}
      <TagField value={typed} onChange={setTyped} error={problem} autoFocus />
      {whole && textOf(tags) !== textOf(before) && <TagEffect nodeId={node.id} tags={tags} />}
      {losesOwner && (
        <>
          <Warning>{t.leaves(owner)}</Warning>
          <Checkbox label={t.confirmLeaves(owner)} checked={confirmed} onChange={setConfirmed} />
        </>
      )}
    </Dialog>
  );
}

const mostShown = 6;

/** Adds, removes or replaces the tags of many nodes, with a preview of the result. */
export function AddTagsDialog({ nodes, onClose }: { nodes: readonly Node[]; onClose(): void }) {
  const run = useBulk(onClose);
  const writes = useNodeWrites();
  const reportUndo = useUndoReport(t);
  const [how, setHow] = useState<Tagging>("addTags");
  const [typed, setTyped] = useState("");
  const tags = tagsOf(typed);
  const whole = tags.length > 0 && !notATag(tags);
  const { changed, refused, leaving } = taggingOf(nodes, how, whole ? tags : []);
  const [confirmed, setConfirmed] = useState(false);
  const ready = whole && changed.length > 0 && (confirmed || leaving === 0);
  // The first tag removes a node from its user, which changing tags cannot undo.
  const undo = changed.some(({ node }) => node.tags.length > 0)
    ? () => void reportUndo(writes.takeTagsBack(changed))
    : undefined;
  return (
    <Confirm
      title={t.titleMany(nodes.length)}
      submit={t.submitMany[how](nodes.length)}
      danger={false}
      word={nodes.length >= 5 ? String(nodes.length) : undefined}
      busy={run.busy}
      disabled={!ready}
      onSubmit={() => void run.start(nodes, how, tags, { undo })}
      onClose={onClose}
      call={<BulkCall nodes={nodes} action={how} tags={tags} />}
    >
      <Choices<Tagging> label={t.how} choices={t.hows} value={how} onChange={setHow} />
      <TagField value={typed} onChange={setTyped} autoFocus />
      {whole && (
        <div className="space-y-2">
          <p>{t.changes(changed.length)}</p>
          {changed.length > 0 && (
            <ul className="space-y-1 rounded-md bg-chip px-3 py-2 font-mono text-12 text-ink">
              {changed.slice(0, mostShown).map(({ node, after }) => (
                <li key={node.id} className="break-words">
                  {t.becomes(printable(node.givenName), after?.join(" ") ?? "")}
                </li>
              ))}
              {changed.length > mostShown && (
                <li className="text-ink-2">{text.nodes.many.more(changed.length - mostShown)}</li>
              )}
            </ul>
          )}
          {leaving > 0 && (
            <>
              <Warning>{t.leaving(leaving)}</Warning>
              <Checkbox label={t.confirmLeaving(leaving)} checked={confirmed} onChange={setConfirmed} />
            </>
          )}
          {refused > 0 && <Warning>{t.refused(refused)}</Warning>}
        </div>
      )}
    </Confirm>
  );
}
