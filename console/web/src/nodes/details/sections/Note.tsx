import { useRef, useState } from "react";
import { api, type Node } from "@/api";
import { authorWords } from "@/policy/author";
import { printable, text } from "@/text";
import { ApiCall, Button, Field, TextArea, Time, useWrites } from "@/ui";
import { useSaveMember } from "../../member";
import { Section, SmallButton, type SummarySection } from "../parts";

const t = text.node.note;
const longest = 1000;

/** The note that administrators wrote about a node. */
export default { column: "right", order: 3, Show: Note } satisfies SummarySection;

function Note({ node, deleted }: { node: Node; deleted: boolean }) {
  const [editing, setEditing] = useState(false);
  const { offered, why } = useWrites("nodes:write");
  const button = useRef<HTMLButtonElement>(null);
  const close = () => {
    setEditing(false);
    requestAnimationFrame(() => button.current?.focus());
  };
  const { note } = node;
  if (!note && (!offered || deleted)) return null;
  return (
    <Section
      title={t.title}
      action={
        offered &&
        !deleted &&
        !editing && (
          <SmallButton ref={button} why={why} onClick={() => setEditing(true)}>
            {note ? t.edit : t.add}
          </SmallButton>
        )
      }
    >
      {editing ? (
        <Editor node={node} onClose={close} />
      ) : note ? (
        <>
          <p className="text-13 break-words whitespace-pre-wrap">{shown(note.text)}</p>
          <p className="mt-2 text-12 text-ink-2">
            {note.author && `${authorWords(note.author, t.key)} · `}
            <Time at={note.time} />
          </p>
        </>
      ) : (
        <p className="text-13 text-ink-2">{t.none}</p>
      )}
    </Section>
  );
}

function Editor({ node, onClose }: { node: Node; onClose(): void }) {
  const [typed, setTyped] = useState(node.note?.text ?? "");
  const written = typed.trim();
  const length = [...written].length;
  const name = printable(node.givenName);
  const { submit, conflict } = useSaveMember({
    node,
    member: "note",
    // The author comes with the response.
    value: written ? { text: written, author: "", time: new Date().toISOString() } : undefined,
    ready: length <= longest,
    call: (note, ifMatch) =>
      api.call("put", "/api/v1/node/{nodeId}/note", {
        params: { nodeId: node.id },
        body: { text: note?.text ?? "" },
        ifMatch,
      }),
    textOf: (note) => shown(note?.text ?? ""),
    words: { done: () => t.done(name), undone: () => t.undone(name), failed: () => t.failed(name) },
    onClose,
    stays: true,
  });
  return (
    <form
      noValidate
      className="space-y-3"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation(); // otherwise the surrounding panel closes and the typed text is lost
        if (typed === (node.note?.text ?? "")) onClose();
      }}
    >
      {conflict}
      <Field
        label={t.label}
        hint={t.hint(length, longest)}
        error={length > longest ? t.tooLong(length - longest) : undefined}
      >
        {(control) => (
          <TextArea
            {...control}
            rows={4}
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
            spellCheck
            autoFocus
          />
        )}
      </Field>
      <div className="flex flex-wrap gap-2">
        <ApiCall method="put" path={`/api/v1/node/${node.id}/note`} body={{ text: written }} />
        <Button type="submit" look="primary" disabled={length > longest}>
          {t.save}
        </Button>
        <Button onClick={onClose}>{text.common.cancel}</Button>
        {node.note && <Button onClick={() => submit({ value: undefined })}>{t.remove}</Button>}
      </div>
    </form>
  );
}

/** The text with invisible characters made visible. */
const shown = (note: string) =>
  note
    .split("\n")
    .map((line) => printable(line.replaceAll("\t", "    "), longest))
    .join("\n");
