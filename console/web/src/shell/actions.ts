import type { LucideIcon } from "lucide-react";
import { useEffect, useRef, useSyncExternalStore } from "react";

/** An action that the palette offers. */
export interface Action {
  /** Stable, so that the palette can show recently used actions first. */
  id: string;
  title: string;
  icon?: LucideIcon;
  /** Other words that people search for. */
  words?: string[];
  keys?: string;
  /**
   * Offered everywhere (1), or destructive (2): sorted after the page's own actions, so that Enter does not run them by
   * accident.
   */
  rank?: 1 | 2;
  run(): void;
}

const listeners = new Set<() => void>();
let lists: readonly { current: readonly Action[] }[] = [];

function set(next: typeof lists) {
  lists = next;
  for (const tell of listeners) tell();
}

/** Offers actions in the palette while a component is mounted. */
export function useActions(list: readonly Action[]) {
  const current = useRef(list);
  current.current = list;
  useEffect(() => {
    set([...lists, current]);
    return () => set(lists.filter((l) => l !== current));
  }, []);
}

export function useAllActions(): Action[] {
  const all = useSyncExternalStore(
    (tell) => {
      listeners.add(tell);
      return () => listeners.delete(tell);
    },
    () => lists,
  );
  return all.flatMap((list) => list.current).sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0));
}
