import { X } from "lucide-react";
import type { ReactNode } from "react";
import { text } from "@/text";

/** The filters of a list, in a line above it. */
export const FilterChipLine = ({ children }: { children: ReactNode }) => (
  <div className="flex shrink-0 flex-wrap items-center gap-2 border-b border-line bg-surface px-6 py-2 max-md:px-4">
    {children}
  </div>
);

/** One condition of a filter, with a button that removes it. */
export const FilterChip = ({ words, onRemove }: { words: string; onRemove(): void }) => (
  <span className="flex h-6 items-center gap-0.5 rounded-full bg-accent-soft pl-2.5 text-12 font-medium text-accent-ink">
    {words}
    <button
      type="button"
      aria-label={text.table.removeFilter(words)}
      className="grid size-6 place-items-center rounded-full hover:bg-accent/15"
      onClick={onRemove}
    >
      <X className="size-3" aria-hidden />
    </button>
  </span>
);
