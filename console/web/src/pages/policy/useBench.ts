import { useDeferredValue, useEffect, useMemo } from "react";
import type { Policy } from "@/api";
import { type Draft, discardDraft, replaceDraft, useDraft, writeDraft } from "@/policy";
import { firstPolicy } from "@/policy/edits";
import { words } from "@/text/policy";
import { useStatus } from "@/ui";
import { type Document, readDocument } from "./document";

export interface Bench {
  text: string;
  saved: string;
  draft: Draft | null;
  /** Whether the text differs from the policy in force. */
  dirty: boolean;
  /** Whether the text is the suggested first policy, and nobody has edited it. */
  starter: boolean;
  /** Whether somebody has saved another version since the draft was started. */
  moved: boolean;
  document: Document;
  change(text: string): void;
  /** The same, returning a function that undoes it. */
  replace(text: string): () => boolean;
}

/** The text being edited, and the text it started from. */
export function useBench(policy: Policy | null): Bench {
  const draft = useDraft();
  const saved = policy?.policy ?? "";
  const version = policy?.version ?? "0";
  const start = policy ? saved : firstPolicy;
  const text = draft?.text ?? start;
  const read = useDeferredValue(text);
  const document = useMemo(() => readDocument(read), [read]);
  const moved = draft !== null && draft.base !== version && draft.text !== saved;
  useEffect(() => {
    if (draft && policy && draft.text === saved) discardDraft();
  }, [draft, policy, saved]);
  const asDraft = (next: string) => (next === start ? null : { base: draft?.base ?? version, text: next });
  return {
    text,
    saved,
    draft,
    dirty: text !== saved,
    starter: !policy && draft === null,
    moved,
    document,
    change: (next) => writeDraft(asDraft(next)),
    replace: (next) => replaceDraft(asDraft(next)),
  };
}

/** Reports what was done to the text, with an undo that works while the text is unchanged. */
export function useDoneWithUndo() {
  const status = useStatus();
  return (done: string, back: () => boolean) =>
    status.done(done, () => {
      if (!back()) status.failed(words.undoLate, words.undoLateWhy);
    });
}
