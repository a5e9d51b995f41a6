import { Search, X } from "lucide-react";
import { useRef } from "react";
import { text } from "@/text";
import { Kbd } from "../badge";
import { useShortcuts } from "../shortcuts";

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
