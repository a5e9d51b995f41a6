import { useState } from "react";
import { currentOf, type IfMatch, type Node, undone, useDNS, useEtag, useNodes } from "@/api";
import { printable, text } from "@/text";
import { ApiCall, Button, Dialog, Field, Input, useStatus } from "@/ui";
import { type Conflict, ConflictView } from "./conflict";
import { dnsName, fullName } from "./facts";
import { useNodeWrites } from "./writes";

const t = text.nodes.rename;

/** What a person types as a name, what it becomes, and what is wrong with it before it is sent. */
export function useRename(node: Node, onClose: () => void) {
  const writes = useNodeWrites();
  const status = useStatus();
  const etag = useEtag(() => writes.etag(node.id));
  const { data: nodes } = useNodes();
  const { data: dns } = useDNS();
  const [typed, setTyped] = useState(node.givenName);
  const [conflict, setConflict] = useState<Conflict | null>(null);
  // A conflict is with what the person saw first, not with what the stream has told since.
  const [before] = useState(node.givenName);
  const name = dnsName(typed);
  const clash = nodes?.items.find((other) => other.id !== node.id && other.givenName === name);
  const problem = !name || /^\d+$/.test(name) ? t.bad : clash ? t.clash(name) : undefined;

  const send = (ifMatch: IfMatch) => {
    if (problem) return;
    if (name === before && !conflict) return onClose();
    writes.rename(node, name, ifMatch).then(
      (left) => {
        onClose();
        const back = (match: string | null) => writes.rename({ ...node, givenName: name }, before, match);
        status.done(t.done(printable(before), name), () =>
          undone<Node>(left, back, (now) => now.givenName === name).then(
            () => status.done(t.undone(printable(before))),
            (error) => status.failed(t.failed(name), error),
          ),
        );
      },
      (error) => {
        const now = currentOf<Node>(error);
        if (now && now.givenName !== before)
          return setConflict({ of: node.id, member: "givenName", mine: name, theirs: printable(now.givenName) });
        if (now) return send(null);
        onClose();
        status.failed(t.failed(printable(before)), error);
      },
    );
  };
  return {
    typed,
    setTyped,
    name,
    problem,
    hint: t.becomes(name ? fullName(name, dns?.data) : "…"),
    submit: () => send(etag),
    conflict: conflict && <ConflictView conflict={conflict} onMine={() => send(null)} onTheirs={onClose} />,
  };
}

export function RenameDialog({ node, onClose }: { node: Node; onClose(): void }) {
  const { typed, setTyped, name, problem, hint, submit, conflict } = useRename(node, onClose);
  return (
    <Dialog
      title={t.title(printable(node.givenName))}
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <ApiCall method="post" path={`/api/v1/node/${node.id}/rename/${encodeURIComponent(name)}`} />
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button type="submit" look="primary" disabled={Boolean(problem)}>
            {t.submit}
          </Button>
        </>
      }
    >
      {conflict}
      <Field label={t.label} error={problem} hint={hint}>
        {(control) => (
          <Input
            {...control}
            mono
            value={typed}
            onChange={(e) => setTyped(e.target.value)}
            autoFocus
            onFocus={(e) => e.target.select()}
          />
        )}
      </Field>
    </Dialog>
  );
}
