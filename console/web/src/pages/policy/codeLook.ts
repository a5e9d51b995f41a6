import { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, ViewPlugin } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { getNonce } from "get-nonce";
import { startState, token } from "./hujson";

const mix = (colour: string) => `color-mix(in srgb, var(--${colour}) 22%, transparent)`;
const changed = { backgroundImage: "none", color: "var(--ink)" };

const theme = EditorView.theme({
  "&": { backgroundColor: "var(--surface)", color: "var(--ink)", height: "100%" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--font-mono)", fontSize: "12.5px", lineHeight: "20px" },
  ".cm-content": { padding: "8px 0 24px", caretColor: "var(--ink)" },
  ".cm-line": { padding: "0 16px 0 8px" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--accent-soft)",
  },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--ink-3)", border: "none" },
  ".cm-lineNumbers .cm-gutterElement": { padding: "0 4px 0 16px", minWidth: "40px" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--hair) 60%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "var(--hair)" },
  ".cm-gutter-lint": { width: "16px" },
  ".cm-gutter-lint .cm-gutterElement": { padding: "6px 4px" },
  ".cm-lint-marker": { width: "8px", height: "8px", borderRadius: "50%", content: '""' },
  ".cm-lint-marker-error": { backgroundColor: "var(--bad)" },
  ".cm-lint-marker-warning": { backgroundColor: "transparent", border: "2px solid var(--warn)" },
  ".cm-lintRange-warning": {
    backgroundImage: "none",
    textDecoration: "underline dotted var(--warn) 1px",
    textUnderlineOffset: "3px",
  },
  ".cm-diagnostic-warning": { borderLeft: "3px solid var(--warn)" },
  ".cm-lintRange-error": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--bad) 1px",
    textUnderlineOffset: "3px",
  },
  ".cm-changeGutter": { width: "3px", paddingLeft: "0" },
  ".cm-changedLineGutter": { background: "var(--tick)" },
  ".cm-deletedLineGutter": { background: "var(--gap)" },
  ".cm-deletedChunk": { backgroundColor: "var(--bad-soft)", paddingLeft: "0" },
  ".cm-deletedChunk .cm-deletedLine": { padding: "0 16px 0 8px", textDecoration: "none" },
  ".cm-deletedChunk .cm-deletedText": { ...changed, background: mix("gap"), textDecoration: "none" },
  ".cm-deletedChunk .cm-deletedText *": { color: "var(--ink)" },
  "&.cm-merge-b .cm-changedLine, .cm-inlineChangedLine": { backgroundColor: "var(--ok-soft)" },
  "&.cm-merge-b .cm-changedText": { ...changed, background: mix("tick") },
  "&.cm-merge-b .cm-changedText *": { color: "var(--ink)" },
  ".cm-collapsedLines": {
    background: "var(--canvas)",
    color: "var(--ink-2)",
    padding: "4px 16px 4px 8px",
    fontFamily: "var(--font-sans)",
    fontSize: "12px",
  },
  ".cm-collapsedLines:before, .cm-collapsedLines:after": { content: "none" },
  ".cm-matchingBracket": { backgroundColor: "var(--chip)", outline: "1px solid var(--line-strong)" },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    color: "var(--ink)",
    border: "1px solid var(--line-strong)",
    borderRadius: "8px",
    boxShadow: "var(--menu-shadow)",
    overflow: "hidden",
  },
  ".cm-tooltip-hover .cm-policy-meaning": { padding: "6px 10px", fontSize: "12px", lineHeight: "16px" },
  ".cm-policy-meaning b": { fontFamily: "var(--font-mono)", fontWeight: "500", marginRight: "8px" },
  ".cm-policy-meaning span": { color: "var(--ink-2)" },
  ".cm-diagnostic": { padding: "6px 10px", fontSize: "12px", lineHeight: "16px" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--bad)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--font-mono)", fontSize: "12px", maxHeight: "240px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "4px 10px", lineHeight: "16px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent-soft)", color: "var(--ink)" },
  ".cm-completionDetail": { color: "var(--ink-3)", fontStyle: "normal", fontFamily: "var(--font-sans)" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "600" },
  ".cm-panels": { backgroundColor: "var(--canvas)", color: "var(--ink)" },
  ".cm-panels-top": { borderBottom: "1px solid var(--line)" },
  ".cm-searchMatch": { backgroundColor: "var(--warn-soft)", outline: "1px solid var(--warn)" },
  ".cm-searchMatch-selected": { backgroundColor: mix("warn") },
});

const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--accent-ink)" },
  { tag: tags.string, color: "var(--ok)" },
  { tag: tags.comment, color: "var(--ink-3)", fontStyle: "italic" },
  { tag: tags.number, color: "var(--route)" },
  { tag: tags.bool, color: "var(--route)" },
]);

const language = StreamLanguage.define({
  name: "hujson",
  startState,
  token,
  languageData: { commentTokens: { line: "//", block: { open: "/*", close: "*/" } } },
});

/**
 * Measures lines again whenever fonts have loaded. The view that first uses a font starts loading it, so document.fonts
 * may be ready before that and again after it; until lines are measured with the right font, the gutter is misaligned.
 */
const measuredWithFonts = ViewPlugin.define((view) => {
  const measure = () => view.requestMeasure();
  document.fonts?.addEventListener("loadingdone", measure);
  void document.fonts?.ready.then(measure);
  return { destroy: () => document.fonts?.removeEventListener("loadingdone", measure) };
});

/** The extensions of every policy view: its language, its colours, and the nonce for its styles. */
export function codeLook(label: string): Extension {
  return [
    EditorView.cspNonce.of(getNonce() ?? ""),
    EditorState.tabSize.of(2),
    theme,
    language,
    syntaxHighlighting(colours),
    measuredWithFonts,
    EditorView.contentAttributes.of({
      "aria-label": label,
      tabindex: "0",
      spellcheck: "false",
      autocapitalize: "off",
      autocorrect: "off",
      "data-gramm": "false",
    }),
  ];
}
