import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useCallback, useSyncExternalStore } from "react";
import { policyQuery } from "@/api";
import { asksBeforeLeaving } from "@/api/leave";
import type { RuleEntry, TestEntry } from "./edits";

export type { RuleEntry, TestEntry };

/** An unsaved policy. Each tab has one, and it survives a reload and signing in again. */
export interface Draft {
  /** The version that it is based on; "0" if there was no policy. */
  base: string;
  text: string;
}

const place = "policy-draft";
const listeners = new Set<() => void>();
/** Undefined until it is read. It is authoritative even if the browser cannot store anything. */
let current: Draft | null | undefined;

function stored(): Draft | null {
  try {
    const found = JSON.parse(sessionStorage.getItem(place) ?? "null");
    return typeof found?.base === "string" && typeof found?.text === "string" ? found : null;
  } catch {
    return null;
  }
}

export function readDraft(): Draft | null {
  if (current === undefined) set(stored());
  return current ?? null;
}

function set(draft: Draft | null) {
  current = draft;
  asksBeforeLeaving("policy", draft !== null);
}

export function writeDraft(draft: Draft | null) {
  set(draft);
  try {
    if (draft) sessionStorage.setItem(place, JSON.stringify(draft));
    else sessionStorage.removeItem(place);
  } catch {
    // Storage is full or disabled: the draft lasts as long as the page, and leaving the page asks.
  }
  for (const tell of listeners) tell();
}

/**
 * Replaces the draft and returns an undo function, which returns false without effect if the draft was edited since.
 */
export function replaceDraft(next: Draft | null): () => boolean {
  const before = readDraft();
  writeDraft(next);
  return () => {
    if (readDraft()?.text !== next?.text) return false;
    writeDraft(before);
    return true;
  };
}

export const discardDraft = () => writeDraft(null);

/** The current draft, updated as it is edited, or null. */
export function useDraft(): Draft | null {
  return useSyncExternalStore((tell) => {
    listeners.add(tell);
    return () => listeners.delete(tell);
  }, readDraft);
}

export interface EditorVisit {
  /** The line for the cursor. */
  line?: number;
  /** An ACL rule to append to the draft. Nothing is saved. */
  insertRule?: RuleEntry;
  /** A test to append to the draft. */
  insertTest?: TestEntry;
}

/** `const openInEditor = useOpenInEditor(); void openInEditor({ line: 12 })` */
export function useOpenInEditor(): (visit: EditorVisit) => Promise<void> {
  const client = useQueryClient();
  const navigate = useNavigate();
  return useCallback(
    async ({ line, insertRule, insertTest }) => {
      if (insertRule || insertTest) {
        const [{ policy }, edits] = await Promise.all([client.ensureQueryData(policyQuery), import("./edits")]);
        const draft = readDraft() ?? { base: policy?.version ?? "0", text: policy?.policy ?? edits.firstPolicy };
        const edit = insertRule ? edits.addRule(draft.text, insertRule) : undefined;
        const last = insertTest ? edits.addTest(edit?.text ?? draft.text, insertTest) : edit;
        if (last) {
          writeDraft({ ...draft, text: last.text });
          line = last.line;
        }
      }
      await navigate({ to: "/policy", search: line ? { line: String(line) } : {} });
    },
    [client, navigate],
  );
}
