// biome-ignore-all lint/a11y/useSemanticElements: a select element cannot take text that it does not offer
/** A text field with suggestions: a combobox with a list, as the ARIA practices describe it. */
import { clsx } from "clsx";
import { type ComponentProps, type KeyboardEvent, useEffect, useRef, useState } from "react";
import { printable } from "@/text";
import { Input } from "./field";

export interface Option {
  /** The value that the field gets. */
  value: string;
  /** A word next to it, such as its kind. */
  note?: string;
}

export function Combobox({
  id,
  value,
  onChange,
  onChoose,
  suggest,
  listLabel,
  onEnter,
  onLeave,
  className,
  ...rest
}: Omit<ComponentProps<typeof Input>, "onChange" | "value" | "id"> & {
  id: string;
  value: string;
  onChange(value: string): void;
  /** Called with a suggestion that was chosen, instead of onChange. */
  onChoose?(value: string): void;
  /** The suggestions for a text. It is called only while the list is open. */
  suggest(typed: string): readonly Option[];
  /** The name of the list for screen readers. */
  listLabel: string;
  /** Called for Enter without a suggestion; true keeps the form from being submitted. */
  onEnter?(): boolean;
  /** Called when the field loses the focus. */
  onLeave?(): void;
}) {
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const list = useRef<HTMLDivElement>(null);
  const found = open ? suggest(value) : [];
  const shown = open && found.length > 0;
  useEffect(() => {
    list.current?.children[active]?.scrollIntoView({ block: "nearest" });
  }, [active]);
  const close = () => {
    setOpen(false);
    setActive(-1);
  };
  const choose = (name: string) => {
    if (onChoose) onChoose(name);
    else onChange(name);
    close();
  };
  const move = (step: number) => {
    setOpen(true);
    const count = shown ? found.length : suggest(value).length;
    if (count > 0) setActive((at) => (at < 0 ? (step > 0 ? 0 : count - 1) : (at + step + count) % count));
  };
  const key = (event: KeyboardEvent) => {
    const name = found[active]?.value;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter" && shown && name !== undefined) {
      // The first Enter accepts the name, the next one submits the form.
      event.preventDefault();
      choose(name);
    } else if (event.key === "Enter") {
      if (onEnter?.()) event.preventDefault();
      close();
    } else if (event.key === "Escape" && shown) {
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  };
  return (
    <span className={clsx("relative block min-w-0", className)}>
      <Input
        {...rest}
        id={id}
        role="combobox"
        aria-expanded={shown}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={shown && active >= 0 ? `${id}-${active}` : undefined}
        value={value}
        onChange={(event) => {
          onChange(event.target.value);
          setOpen(true);
          setActive(-1);
        }}
        onClick={() => setOpen(true)}
        onBlur={() => {
          close();
          onLeave?.();
        }}
        onKeyDown={key}
      />
      <div
        ref={list}
        id={`${id}-list`}
        role="listbox"
        aria-label={listLabel}
        hidden={!shown}
        className="absolute top-full left-0 z-40 mt-1 max-h-72 w-full min-w-56 overflow-y-auto rounded-lg border border-line-strong bg-raised p-1 shadow-menu"
      >
        {found.map((option, i) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys
          // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus
          <div
            key={option.value}
            id={`${id}-${i}`}
            role="option"
            aria-selected={i === active}
            // The field keeps the focus.
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => choose(option.value)}
            className={clsx(
              "flex min-h-8 cursor-pointer items-center gap-3 rounded-md px-2 text-13 hover:bg-sunken max-md:min-h-11",
              i === active && "bg-accent-soft",
            )}
          >
            <span className="min-w-0 flex-1 truncate text-ink">{printable(option.value)}</span>
            {option.note && <span className="shrink-0 text-11 text-ink-3">{option.note}</span>}
          </div>
        ))}
      </div>
    </span>
  );
}
