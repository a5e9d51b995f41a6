import {
  autocompletion,
  type CompletionContext,
  type CompletionResult,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, indentOnInput } from "@codemirror/language";
import { type Diagnostic, lintGutter, nextDiagnostic, setDiagnostics } from "@codemirror/lint";
import { unifiedMergeView } from "@codemirror/merge";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Text } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  hoverTooltip,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { getLocation } from "jsonc-parser";
import { type Ref, type RefObject, useEffect, useImperativeHandle, useRef } from "react";
import { words } from "@/text/policy";
import { codeLook } from "./codeLook";
import type { Document } from "./document";
import { findBar } from "./findBar";
import { meaningOf, type Network, suggestionsAt } from "./names";
import { type Found, rangeInLine } from "./problems";

export interface EditorHandle {
  /** Moves the cursor there and scrolls it into view. */
  goTo(line: number, column?: number): void;
  /** The same without taking the focus. */
  show(line: number): void;
}

/** What the names in the text mean, for completion and for hints about them. */
export interface Knowledge {
  document: Document;
  network: Network;
}

interface CodeEditorProps {
  text: string;
  /** The policy in force, to mark differences; null marks nothing. */
  original: string | null;
  problems: readonly Found[];
  hints: readonly Found[];
  knowledge: RefObject<Knowledge>;
  onChange(text: string): void;
  /** The string under the cursor, or empty. */
  onLiteral(literal: string): void;
  onSave(): void;
  ref?: Ref<EditorHandle>;
}

export function CodeEditor(props: CodeEditorProps) {
  const { text, original, problems, hints, ref } = props;
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<EditorView | null>(null);
  const diffPart = useRef(new Compartment());
  const current = useRef(props);
  current.current = props;

  // biome-ignore lint/correctness/useExhaustiveDependencies: the view lives as long as the component; see the effects below
  useEffect(() => {
    if (!host.current) return;
    const view = new EditorView({
      parent: host.current,
      state: EditorState.create({ doc: text, extensions: [extensions(current), diffPart.current.of([])] }),
    });
    editor.current = view;
    return () => {
      editor.current = null;
      view.destroy();
    };
  }, []);

  useEffect(() => {
    const view = editor.current;
    if (view) replaceText(view, text);
  }, [text]);
  useEffect(() => {
    const diff = diffPart.current;
    // The original text is a state field that is removed only together with the extension.
    editor.current?.dispatch({ effects: diff.reconfigure([]) });
    if (original === null) return;
    editor.current?.dispatch({
      effects: diff.reconfigure(unifiedMergeView({ original, mergeControls: false, gutter: true })),
    });
  }, [original]);
  useEffect(() => {
    const view = editor.current;
    if (!view) return;
    const { doc } = view.state;
    const found = [...diagnosticsOf(doc, problems, "error"), ...diagnosticsOf(doc, hints, "warning")];
    view.dispatch(setDiagnostics(view.state, found));
  }, [problems, hints]);

  useImperativeHandle(ref, () => {
    const show = (line: number, column = 0) => {
      const view = editor.current;
      if (!view) return;
      const at = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
      const position = at.from + rangeInLine(at.text, column).from;
      view.dispatch({
        selection: { anchor: position },
        effects: EditorView.scrollIntoView(position, { y: "center" }),
      });
    };
    return {
      show,
      goTo(line, column) {
        show(line, column);
        editor.current?.focus();
      },
    };
  }, []);
  return <div ref={host} className="h-full min-h-0 overflow-hidden bg-surface" />;
}

function extensions(current: RefObject<CodeEditorProps>) {
  return [
    codeLook(words.label),
    lineNumbers(),
    // A truncated line could hide the edit itself, or a mistake in it.
    EditorView.lineWrapping,
    lintGutter(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    highlightSelectionMatches(),
    search({ top: true, createPanel: findBar }),
    autocompletion({ override: [(context) => complete(context, current.current.knowledge.current)], icons: false }),
    hoverTooltip((view, position) => hover(view, position, current.current.knowledge.current)),
    keymap.of([
      {
        key: "Mod-s",
        run() {
          current.current.onSave();
          return true;
        },
      },
      { key: "F8", run: nextDiagnostic },
      ...closeBracketsKeymap,
      ...completionKeymap,
      ...searchKeymap,
      ...historyKeymap,
      ...defaultKeymap,
    ]),
    EditorView.updateListener.of((update) => {
      if (update.docChanged && !update.transactions.some((tr) => tr.isUserEvent("outside"))) {
        current.current.onChange(update.state.doc.toString());
      }
      if (update.docChanged || update.selectionSet) {
        current.current.onLiteral(literalAt(update.state.doc, update.state.selection.main.head)?.text ?? "");
      }
    }),
  ];
}

/** Changes the text with the smallest edit, so that the cursor stays in place and it can be undone. */
function replaceText(view: EditorView, text: string) {
  const old = view.state.doc.toString();
  if (old === text) return;
  let from = 0;
  while (from < old.length && from < text.length && old[from] === text[from]) from++;
  let end = 0;
  const most = Math.min(old.length, text.length) - from;
  while (end < most && old[old.length - 1 - end] === text[text.length - 1 - end]) end++;
  view.dispatch({
    changes: { from, to: old.length - end, insert: text.slice(from, text.length - end) },
    userEvent: "outside",
  });
}

function diagnosticsOf(doc: Text, problems: readonly Found[], severity: Diagnostic["severity"]): Diagnostic[] {
  return problems.map(({ line, column, text }) => {
    const at = doc.line(Math.min(Math.max(line, 1), doc.lines));
    const { from, to } = rangeInLine(at.text, column);
    return { from: at.from + from, to: at.from + to, severity, message: text };
  });
}

/** The string literal at a position, without its quotes. */
function literalAt(doc: Text, position: number): { from: number; to: number; text: string; closed: boolean } | null {
  const line = doc.lineAt(position);
  for (const found of line.text.matchAll(/\/\/.*|"((?:[^"\\]|\\.)*)("?)/g)) {
    if (found[1] === undefined) return null;
    const from = line.from + found.index + 1;
    const to = from + found[1].length;
    if (position >= from && position <= to) return { from, to, text: found[1], closed: found[2] === '"' };
  }
  return null;
}

function complete(context: CompletionContext, { document, network }: Knowledge): CompletionResult | null {
  const { state, pos, explicit } = context;
  const literal = literalAt(state.doc, pos);
  if (!literal && !explicit) return null;
  const { path, isAtPropertyKey } = getLocation(state.doc.toString(), pos);
  const typed = literal ? state.sliceDoc(literal.from, pos) : "";
  const found = suggestionsAt(path, isAtPropertyKey, typed, document, network);
  if (found.length === 0) return null;
  return {
    from: literal?.from ?? pos,
    to: literal?.closed ? literal.to : pos,
    options: found.map(({ label, detail, member }) => ({
      label,
      detail,
      type: member ? "property" : "text",
      apply: literal ? label : member ? `${JSON.stringify(label)}: ` : JSON.stringify(label),
    })),
  };
}

function hover(view: EditorView, position: number, { document: policy, network }: Knowledge) {
  const literal = literalAt(view.state.doc, position);
  const meaning = literal && meaningOf(literal.text, policy, network);
  if (!literal || !meaning) return null;
  return {
    pos: literal.from,
    end: literal.to,
    above: true,
    create() {
      const dom = document.createElement("div");
      dom.className = "cm-policy-meaning";
      const name = document.createElement("b");
      name.textContent = meaning.name;
      const says = document.createElement("span");
      says.textContent = meaning.says;
      dom.append(name, says);
      return { dom };
    },
  };
}
