import { unifiedMergeView } from "@codemirror/merge";
import { EditorState } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { clsx } from "clsx";
import { useEffect, useRef } from "react";
import { codeLook } from "./codeLook";

/** A read-only text with differences from another marked. Unchanged parts are collapsed, except near changes. */
export function DiffView({
  before,
  text,
  label,
  whole,
  className,
}: {
  /** Null shows only the text. */
  before: string | null;
  text: string;
  label: string;
  whole?: boolean;
  className?: string;
}) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!host.current) return;
    const collapse = whole ? undefined : { margin: 3, minSize: 6 };
    const view = new EditorView({
      parent: host.current,
      state: EditorState.create({
        doc: text,
        extensions: [
          codeLook(label),
          lineNumbers(),
          EditorState.readOnly.of(true),
          EditorView.contentAttributes.of({ "aria-readonly": "true" }),
          EditorView.lineWrapping,
          before === null
            ? []
            : unifiedMergeView({ original: before, mergeControls: false, collapseUnchanged: collapse }),
        ],
      }),
    });
    return () => view.destroy();
  }, [before, text, label, whole]);
  return <div ref={host} className={clsx("overflow-hidden rounded-md border border-line bg-surface", className)} />;
}
