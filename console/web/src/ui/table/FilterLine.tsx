import { Search, X } from "lucide-react";
import { type ReactNode, useRef } from "react";
import { removeTerm, type Term } from "@/filter";
import { text } from "@/text";
import { Kbd } from "../badge";
import { useShortcuts } from "../shortcuts";
import { FilterChip, FilterChipLine } from "./FilterChip";

/** The filter input of a list. Use it with useTyped. `/` moves the focus here. */
export function FilterLine({
  label,
  placeholder,
  value,
  onChange,
}: {
  label: string;
  placeholder: string;
  value: string;
  onChange(value: string): void;
}) {
  const input = useRef<HTMLInputElement>(null);
  useShortcuts([
    { keys: "/", label: text.table.keys.filter, group: text.shell.groups.list, run: () => input.current?.focus() },
  ]);
  return (
    <div className="relative w-[290px] min-w-0 max-md:flex-1">
      <Search className="pointer-events-none absolute top-2 left-2.5 size-4 text-ink-3" aria-hidden />
      <input
        ref={input}
        type="search"
        aria-label={label}
        placeholder={placeholder}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          if (value) onChange("");
          else event.currentTarget.blur();
        }}
        autoComplete="off"
        spellCheck={false}
        aria-keyshortcuts="/"
        className="h-8 w-full rounded-md border border-control bg-surface pr-8 pl-8.5 outline-offset-0 placeholder:text-13 [&::-webkit-search-cancel-button]:hidden max-md:text-[16px]"
      />
      <span className="absolute top-1.5 right-1.5">
        {value ? (
          <button
            type="button"
            aria-label={text.table.clearFilters}
            className="-m-0.5 grid size-6 place-items-center rounded text-ink-3 hover:bg-sunken hover:text-ink"
            onClick={() => onChange("")}
          >
            <X className="size-3.5" aria-hidden />
          </button>
        ) : (
          <span className="max-md:hidden" aria-hidden>
            <Kbd>/</Kbd>
          </span>
        )}
      </span>
    </div>
  );
}

/** The terms with a field in a filter line, each with a button that removes it. */
export function FilterChips({
  terms,
  value,
  onChange,
  children,
}: {
  terms: readonly Term[];
  value: string;
  onChange(value: string): void;
  children?: ReactNode;
}) {
  const shown = terms.filter((term) => term.field !== null);
  if (shown.length === 0) return null;
  return (
    <FilterChipLine>
      {shown.map(({ text: word }) => (
        <FilterChip key={word} words={word} onRemove={() => onChange(removeTerm(value, word))} />
      ))}
      <button
        type="button"
        className="h-6 text-12 text-ink-2 underline-offset-2 hover:underline"
        onClick={() => onChange("")}
      >
        {text.table.clearFilters}
      </button>
      {children}
    </FilterChipLine>
  );
}
