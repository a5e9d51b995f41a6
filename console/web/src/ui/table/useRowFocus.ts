import { useEffect, useRef, useState } from "react";
import { text } from "@/text";
import { type Shortcut, useShortcuts } from "../shortcuts";
import type { Entry } from "./order";
import type { DataTableProps } from "./props";

/** One row is a Tab stop; j and k move from row to row. */
export function useRowFocus<T>(
  { onOpen, onSelect, rowKeys = [], rowId }: DataTableProps<T>,
  entries: readonly Entry<T>[],
  ids: readonly string[],
  scroller: { current: HTMLElement | null },
  scrollTo: (index: number) => void,
  toggle: (id: string, range: boolean) => void,
) {
  const [active, setActive] = useState<string | null>(null);
  const wanted = useRef<string | null>(null);
  useEffect(() => {
    if (!wanted.current) return;
    const row = scroller.current?.querySelector<HTMLElement>(`[data-row="${CSS.escape(wanted.current)}"]`);
    if (!row) return;
    row.focus({ preventScroll: true });
    wanted.current = null;
  });
  const move = (step: number) => {
    const at = active === null ? -1 : ids.indexOf(active);
    const id = ids[at < 0 ? 0 : Math.min(Math.max(at + step, 0), ids.length - 1)];
    if (id === undefined) return;
    wanted.current = id;
    setActive(id);
    scrollTo(entries.findIndex((e) => e.id === id));
  };
  const row = () => {
    const entry = entries.find((e) => e.id === active);
    return entry && "row" in entry ? entry.row : undefined;
  };
  const withRow = (run: (row: T) => void) => () => {
    const focused = row();
    if (focused !== undefined) run(focused);
  };
  const group = text.shell.groups.list;
  const shortcuts: Shortcut[] = [
    { keys: "j", label: text.table.keys.down, group, run: () => move(1) },
    { keys: "k", label: text.table.keys.up, group, run: () => move(-1) },
    ...(onOpen ? [{ keys: "Enter", label: text.table.keys.open, group }] : []),
    ...(onSelect
      ? [
          { keys: "x", label: text.table.keys.select, group, run: withRow((r) => toggle(rowId(r), false)) },
          { keys: "X", label: text.table.keys.range, group, run: withRow((r) => toggle(rowId(r), true)) },
        ]
      : []),
    ...rowKeys.map((key) => ({ ...key, group, run: withRow(key.run) })),
  ];
  useShortcuts(shortcuts);
  return { active, setActive };
}
