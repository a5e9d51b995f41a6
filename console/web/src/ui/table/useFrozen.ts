import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { type Entry, freeze } from "./order";

/**
 * Keeps the order while the pointer or the focus is in the list. It delays only reordering by new data, not by the
 * user.
 */
export function useFrozen<T>(laidOut: readonly Entry<T>[], key: string) {
  const [held, setHeld] = useState<{ pointer: boolean; focus: boolean }>({ pointer: false, focus: false });
  const [fresh, setFresh] = useState(0);
  const last = useRef<{ key: string; ids: readonly string[] }>({ key: "", ids: [] });
  const whole = `${key} ${fresh}`;
  const frozen = (held.pointer || held.focus) && last.current.key === whole;
  const { entries, moved } = useMemo(
    () => (frozen ? freeze(last.current.ids, laidOut) : { entries: laidOut, moved: 0 }),
    [frozen, laidOut],
  );
  useEffect(() => {
    last.current = { key: whole, ids: entries.map((e) => e.id) };
  }, [whole, entries]);
  const hold = useCallback((by: "pointer" | "focus") => setHeld((h) => (h[by] ? h : { ...h, [by]: true })), []);
  const release = useCallback((by: "pointer" | "focus") => setHeld((h) => (h[by] ? { ...h, [by]: false } : h)), []);
  const refresh = useCallback(() => setFresh((n) => n + 1), []);
  return { entries, moved, hold, release, refresh };
}
