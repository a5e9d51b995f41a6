import { X } from "lucide-react";
import { type ReactNode, useEffect } from "react";
import { text } from "@/text";
import { announce } from "../announce";
import { IconButton } from "../button";
import { useFoot } from "../foot";
import { busy } from "../shortcuts";

/** The actions on the selected rows. Rows stay selected when a filter hides them, and this says so. */
export function BulkBar(props: BulkBarProps) {
  return props.selected > 0 && <Bar {...props} />;
}

interface BulkBarProps {
  label: string;
  selected: number;
  hidden: number;
  onClear(): void;
  children: ReactNode;
}

function Bar({ label, selected, hidden, onClear, children }: BulkBarProps) {
  useEscape(onClear);
  useEffect(() => announce(text.table.selectedAloud(selected)), [selected]);
  return (
    <div
      ref={useFoot<HTMLDivElement>()}
      role="toolbar"
      aria-label={text.table.bulk(label)}
      className="layer-in absolute bottom-5 left-1/2 z-30 flex w-max max-w-[calc(100%-16px)] -translate-x-1/2 flex-wrap items-center gap-1 rounded-xl border border-line-strong bg-raised p-1.5 shadow-bar max-md:[&>button]:px-2 max-md:[&>button:not(:has(>span),[aria-label])>svg]:hidden"
    >
      <span className="shrink-0 px-2 font-semibold whitespace-nowrap tabular-nums">
        {text.table.selected(selected)}
        {hidden > 0 && <span className="font-normal text-ink-3">, {text.table.notShown(hidden)}</span>}
      </span>
      {children}
      <IconButton label={text.table.clearSelection} icon={X} onClick={onClear} className="max-md:order-first" />
    </div>
  );
}

/** Esc clears the selection, unless it means something else: a layer, a field, or the panel beside the list. */
function useEscape(onClear: () => void) {
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented || busy(event.target)) return;
      if (!document.querySelector("[data-panel]")) onClear();
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, [onClear]);
}
