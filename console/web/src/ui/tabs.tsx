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
  segmented,
}: {
  label: string;
  tabs: readonly Tab<V>[];
  value: V;
  onChange(value: V): void;
  panel: string;
  /** Whether they look like a switch, for tabs below other tabs. */
  segmented?: boolean;
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
      className={clsx(
        "flex min-w-0 overflow-x-auto [scrollbar-width:none]",
        segmented ? "my-2 w-fit max-w-full gap-1 rounded-md bg-sunken p-1" : "-mx-2 self-end px-2",
      )}
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
              "flex shrink-0 items-center gap-2 px-2 font-medium -outline-offset-2",
              segmented ? "h-7 rounded max-md:h-8" : "h-11 border-b-2",
              on ? "text-ink" : "text-ink-2 hover:text-ink",
              on && segmented && "bg-surface shadow-sm dark:bg-chip",
              !segmented && (on ? "border-accent" : "border-transparent"),
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
