import { clsx } from "clsx";
import { type KeyboardEvent, useRef } from "react";
import { Badge, type Tone } from "./badge";

export interface Tab<V extends string> {
  value: V;
  label: string;
  count?: number;
  tone?: Tone;
}

/** Tabs. `panel` is the ID of the element that shows the selected one, with role tabpanel. */
export function Tabs<V extends string>({
  label,
  tabs,
  value,
  onChange,
  panel,
}: {
  label: string;
  tabs: readonly Tab<V>[];
  value: V;
  onChange(value: V): void;
  panel: string;
}) {
  const list = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = tabs.findIndex((tab) => tab.value === value);
    const next = (at + step + tabs.length) % tabs.length;
    const tab = tabs[next];
    if (!tab) return;
    onChange(tab.value);
    (list.current?.children[next] as HTMLElement | undefined)?.focus();
  };
  return (
    <div
      ref={list}
      role="tablist"
      aria-label={label}
      onKeyDown={move}
      className="-mx-2 flex min-w-0 self-end overflow-x-auto px-2 [scrollbar-width:none]"
    >
      {tabs.map((tab) => {
        const on = tab.value === value;
        return (
          <button
            key={tab.value}
            type="button"
            role="tab"
            id={`${panel}-${tab.value}`}
            aria-selected={on}
            aria-controls={panel}
            tabIndex={on ? 0 : -1}
            onClick={() => onChange(tab.value)}
            className={clsx(
              "flex h-11 shrink-0 items-center gap-2 border-b-2 px-2 font-medium -outline-offset-2",
              on ? "border-accent text-ink" : "border-transparent text-ink-2 hover:text-ink",
            )}
          >
            {tab.label}
            {tab.count !== undefined && (
              <Badge tone={tab.count > 0 ? (tab.tone ?? "plain") : "plain"}>{tab.count.toLocaleString("en")}</Badge>
            )}
          </button>
        );
      })}
    </div>
  );
}
