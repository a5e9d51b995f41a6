import { useCallback, useRef } from "react";

/** Selects a row, or with Shift all rows from the last one to it. */
export function useToggle(
  ids: readonly string[],
  selected: ReadonlySet<string> | undefined,
  onSelect: ((s: ReadonlySet<string>) => void) | undefined,
) {
  const last = useRef<string | null>(null);
  const now = useRef({ ids, selected, onSelect });
  now.current = { ids, selected, onSelect };
  return useCallback((id: string, range: boolean) => {
    const { ids, selected, onSelect } = now.current;
    if (!onSelect) return;
    const next = new Set(selected);
    const on = !next.has(id);
    const from = range && last.current ? ids.indexOf(last.current) : -1;
    const to = ids.indexOf(id);
    const touched = from < 0 ? [id] : ids.slice(Math.min(from, to), Math.max(from, to) + 1);
    for (const each of touched) {
      if (on) next.add(each);
      else next.delete(each);
    }
    last.current = id;
    onSelect(next);
  }, []);
}

/** Whether all rows are selected, and a function that selects all or none. */
export function selectionOf(
  ids: readonly string[],
  selected: ReadonlySet<string> | undefined,
  onSelect: ((s: ReadonlySet<string>) => void) | undefined,
): { all: boolean | "indeterminate"; onAll(): void } {
  const count = ids.filter((id) => selected?.has(id)).length;
  const onAll = () => {
    const next = new Set(selected);
    for (const id of ids) {
      if (count === ids.length) next.delete(id);
      else next.add(id);
    }
    onSelect?.(next);
  };
  return { all: count === 0 ? false : count === ids.length ? true : "indeterminate", onAll };
}
