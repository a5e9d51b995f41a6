import { useCallback } from "react";
import type { EventMark, Told } from "./marks";
import { around, lengths, type Period, shifted } from "./range";
import type { TimelineSearch } from "./state";

/** Navigation to another time or to an event. It changes the URL, so Back undoes it. */
export function useMoves(
  search: TimelineSearch,
  setSearch: (change: Partial<TimelineSearch>, how?: "replace" | "push") => void,
  start: number,
  end: number,
) {
  const showPeriod = useCallback(
    ({ from, to }: Period) =>
      setSearch({ from: new Date(from).toISOString(), to: to === null ? "" : new Date(to).toISOString() }, "push"),
    [setSearch],
  );
  const showRange = (range: string) => setSearch({ range, from: "", to: "" }, "push");
  const shift = (direction: 1 | -1) => {
    const next = shifted(start, end, direction, Date.now());
    if (next) return showPeriod(next);
    // A period cannot go beyond now, so follow the current time.
    const length = end - start;
    const same = Object.entries(lengths).find(([, each]) => Math.abs(each - length) < 1000);
    if (same) showRange(same[0]);
    else showPeriod({ from: Date.now() - length, to: null });
  };
  const openEvent = useCallback(
    ({ entry }: Told) => setSearch({ event: entry.id, at: entry.at }, search.event ? "replace" : "push"),
    [setSearch, search.event],
  );
  const openMark = useCallback(
    (mark: EventMark) => {
      const [first] = mark.told;
      const last = mark.told.at(-1);
      if (!first || !last) return;
      if (mark.told.length === 1) openEvent(first);
      else showPeriod(around(last.at, first.at, Date.now()));
    },
    [openEvent, showPeriod],
  );
  return { showPeriod, showRange, shift, openEvent, openMark };
}
