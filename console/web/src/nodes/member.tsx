import { type ReactNode, useState } from "react";
import { type Answer, currentOf, type IfMatch, type Node, undone, useEtag } from "@/api";
import { useStatus } from "@/ui";
import { type Conflict, ConflictView } from "./conflict";
import { useNodeWrites } from "./writes";

interface Saving<M extends keyof Node> {
  node: Node;
  member: M;
  /** The value to save, as currently typed. */
  value: Node[M];
  /** Whether it can be saved. */
  ready: boolean;
  call(value: Node[M], ifMatch: string | null | undefined): Promise<Answer<{ node: Node }>>;
  /** The text of a value, to compare values and to show them in a conflict. */
  textOf(value: Node[M]): string;
  /** Status messages, given the previous or the typed value. Without `undone` there is no undo. */
  words: { done(before: Node[M]): string; undone?(before: Node[M]): string; failed(shown: Node[M]): string };
  onClose(): void;
  /** Whether the editor stays open after a failure, so that what was typed is not lost. */
  stays?: boolean;
  /** Shows a failure in the editor, instead of the status line. It then stays open. */
  onFailed?(error: unknown): void;
}

interface Saved<M extends keyof Node> {
  /** Saves what was typed, or another value. */
  submit(other?: { value: Node[M] }): void;
  /** The choice for the person if somebody else changed the field in the meantime. */
  conflict: ReactNode;
}

/**
 * Saves one field of a node, for a component that is mounted when somebody starts to change it. The node shows the new
 * value immediately, and the old one again if the call fails. Another change in the meantime is a conflict only if it
 * changed the same field.
 */
export function useSaveMember<M extends keyof Node>(saving: Saving<M>): Saved<M> {
  const { node, member, textOf, words, onClose } = saving;
  const writes = useNodeWrites();
  const status = useStatus();
  const etag = useEtag(() => writes.etag(node.id));
  const [conflict, setConflict] = useState<(Conflict & { other?: { value: Node[M] } }) | null>(null);
  // A conflict is with what the person saw first, not with what the stream has reported since.
  const [before] = useState(node[member]);

  const send = (ifMatch: IfMatch, other?: { value: Node[M] }) => {
    if (!other && !saving.ready) return;
    const value = other ? other.value : saving.value;
    const text = textOf(value);
    if (text === textOf(before) && !conflict) return onClose();
    writes.save(node, member, value, saving.call, ifMatch).then(
      (left) => {
        onClose();
        const back = (match: string | null) =>
          writes.save({ ...node, [member]: value }, member, before, saving.call, match);
        const { undone: wordsOfUndo } = words;
        const undo =
          wordsOfUndo &&
          (() =>
            undone<Node>(left, back, (now) => textOf(now[member]) === text).then(
              () => status.done(wordsOfUndo(before)),
              (error) => status.failed(words.failed(value), error),
            ));
        status.done(words.done(before), undo);
      },
      (error) => {
        const now = currentOf<Node>(error);
        if (now && textOf(now[member]) !== textOf(before))
          return setConflict({ of: node.id, member, mine: text, theirs: textOf(now[member]), other });
        if (now) return send(null, other);
        if (saving.onFailed) return saving.onFailed(error);
        if (!saving.stays) onClose();
        status.failed(words.failed(before), error);
      },
    );
  };
  return {
    submit: (other) => send(etag, other),
    conflict: conflict && (
      <ConflictView conflict={conflict} onMine={() => send(null, conflict.other)} onTheirs={onClose} />
    ),
  };
}
