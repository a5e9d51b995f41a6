import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useCallback, useSyncExternalStore } from "react";
import { policyQuery } from "@/api";
import { asksBeforeLeaving } from "@/api/leave";
import type { RuleEntry, TestEntry } from "./edits";

export type { RuleEntry, TestEntry };

/** A policy that is being written. There is one for each tab, and it outlives a reload and signing in again. */
export interface Draft {
  /** The version that it was made from; "0" when there was no policy. */
  base: string;
  text: string;
}

const place = "policy-draft";
const listeners = new Set<() => void>();
/** Undefined until it is read. It is the truth even where the browser keeps nothing. */
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
    // No room: the draft lives as long as the page, and leaving asks.
  }
  for (const tell of listeners) tell();
}

/** Puts another draft in place, and gives the way back. It is refused, with false, once somebody has written on. */
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

/** The draft as it is being written, or null. */
export function useDraft(): Draft | null {
  return useSyncExternalStore((tell) => {
    listeners.add(tell);
    return () => listeners.delete(tell);
  }, readDraft);
}

export interface EditorVisit {
  /** Where the cursor goes. */
  line?: number;
  /** An acl that is written at the end of its list, into the draft. Nothing is saved. */
  insertRule?: RuleEntry;
  /** The same for a test. */
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
