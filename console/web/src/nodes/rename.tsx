import { useState } from "react";
import { api, type Node, useDNS, useNodes } from "@/api";
import { printable, text } from "@/text";
import { ApiCall, Button, Dialog, Field, Input } from "@/ui";
import { dnsName, fullName } from "./facts";
import { useSaveMember } from "./member";

const t = text.nodes.rename;

/** The state of a rename: the typed name, the resulting name, and what is wrong with it before it is sent. */
export function useRename(node: Node, onClose: () => void) {
  const { data: nodes } = useNodes();
  const { data: dns } = useDNS();
  const [typed, setTyped] = useState(node.givenName);
  const name = dnsName(typed);
  const clash = nodes?.items.find((other) => other.id !== node.id && other.givenName === name);
  const problem = !name || /^\d+$/.test(name) ? t.bad : clash ? t.clash(name) : undefined;
  const { submit, conflict } = useSaveMember({
    node,
    member: "givenName",
    value: name,
    ready: !problem,
    call: (newName, ifMatch) =>
      api.call("post", "/api/v1/node/{nodeId}/rename/{newName}", { params: { nodeId: node.id, newName }, ifMatch }),
    textOf: (name) => printable(name),
    words: {
      done: (before) => t.done(printable(before), name),
      undone: (before) => t.undone(printable(before)),
      failed: (shown) => t.failed(printable(shown)),
    },
    onClose,
  });
  return {
    typed,
    setTyped,
    name,
    problem,
    hint: t.becomes(name ? fullName(name, dns?.data) : "…"),
    submit: () => submit(),
    conflict,
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
