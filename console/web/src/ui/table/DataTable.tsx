import { useVirtualizer } from "@tanstack/react-virtual";
import { clsx } from "clsx";
import { RefreshCw } from "lucide-react";
import { memo, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { text } from "@/text";
import { usePreferences } from "../preferences";
import { Delayed, Skeleton } from "../states";
import { useMedia } from "../useMedia";
import { useWidth } from "../useWidth";
import { columnsFitting } from "./columns";
import { type Entry, layOut, sortRows } from "./order";
import { PhoneBar } from "./PhoneBar";
import { PhoneList, phoneHead } from "./PhoneList";
import type { DataTableProps, Visible } from "./props";
import { selectionOf, useToggle } from "./selection";
import { useFrozen } from "./useFrozen";
import { useRowFocus } from "./useRowFocus";
import { WideTable } from "./WideTable";

const heights = { comfortable: 40, compact: 32, phone: 61 };
/** The height of the sticky header row, which takes space from the rows. */
const headRow = 36;

/**
 * The list component of the console. Only visible rows are rendered. It renders again when a property changes, so an
 * unstable property costs a render for every letter typed into a filter.
 */
export const DataTable = memo(Table) as typeof Table;

function Table<T>(props: DataTableProps<T>) {
  const { rows, rowId, sort, columns, usual, group, asked, selected, onSelect } = props;
  const phone = useMedia("(max-width: 767px)");
  const { density } = usePreferences();
  const height = phone ? heights.phone : heights[density];
  const scroller = useRef<HTMLDivElement>(null);
  const room = useWidth(scroller);
  const shown = useMemo(() => columnsFitting(columns, props.chosen ?? "", room), [columns, props.chosen, room]);

  const sorted = useMemo(() => sortRows(rows, sort, columns, usual), [rows, sort, columns, usual]);
  const laidOut = useMemo(
    () => layOut(group && !sort ? group(sorted) : [{ id: "", title: "", rows: sorted }], rowId),
    [sorted, group, sort, rowId],
  );
  const { entries, moved, hold, release, refresh } = useFrozen(laidOut, `${sort} ${asked}`);
  const ids = useMemo(() => entries.flatMap((e) => ("row" in e ? [e.id] : [])), [entries]);

  const { visible, scrollTo } = useVisible(entries, height, phone, scroller);

  const toggle = useToggle(ids, selected, onSelect);
  const [asksBoxes, setAsksBoxes] = useState(false);
  const boxes = onSelect && (asksBoxes || (selected?.size ?? 0) > 0);
  const { active, setActive } = useRowFocus(props, entries, ids, scroller, scrollTo, toggle);

  if (!props.loading && rows.length === 0)
    return <div className="min-h-0 flex-1 overflow-auto bg-surface">{props.empty}</div>;
  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      {moved > 0 && <RefreshOrder moved={moved} onClick={refresh} />}
      {phone && !props.loading && (
        <PhoneBar
          columns={columns}
          sort={sort}
          onSort={props.onSort}
          choosing={boxes}
          onChoosing={(on) => {
            setAsksBoxes(on);
            if (!on) onSelect?.(new Set());
          }}
          {...selectionOf(ids, selected, onSelect)}
        />
      )}
      {/* biome-ignore lint/a11y/useSemanticElements: a section with a name is what this is */}
      <div
        ref={scroller}
        role="region"
        aria-label={text.table.scrollable(props.label)}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard
        tabIndex={0}
        onPointerEnter={(e) => e.pointerType === "mouse" && hold("pointer")}
        onPointerLeave={() => release("pointer")}
        onFocus={(e) => e.target !== e.currentTarget && hold("focus")}
        onBlur={(e) => !e.currentTarget.contains(e.relatedTarget) && release("focus")}
        className={clsx(
          "min-h-0 flex-1 overflow-auto bg-surface -outline-offset-2",
          // The bulk action bar must not cover the last rows.
          (selected?.size ?? 0) > 0 && (phone ? "pb-28" : "pb-20"),
        )}
      >
        {props.loading ? (
          <Delayed>
            <Waiting phone={phone} height={height} />
          </Delayed>
        ) : phone ? (
          <PhoneList {...props} visible={visible} height={height} boxes={boxes ?? false} onToggle={toggle} />
        ) : (
          <WideTable
            {...props}
            shown={shown}
            ids={ids}
            rowCount={entries.length}
            visible={visible}
            height={height}
            isActive={(id) => id === active || (active === null && id === ids[0])}
            onToggle={toggle}
            onFocus={setActive}
          />
        )}
      </div>
    </div>
  );
}

/** The rows to render: the visible ones, and a few around them. */
function useVisible<T>(
  entries: readonly Entry<T>[],
  height: number,
  phone: boolean,
  scroller: { current: HTMLElement | null },
): { visible: Visible<T>; scrollTo(index: number): void } {
  const heightOf = (entry: Entry<T> | undefined) => (phone && entry && "head" in entry ? phoneHead : height);
  const virtual = useVirtualizer({
    count: entries.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => heightOf(entries[index]),
    overscan: 8,
    initialRect: { width: 1200, height: 800 },
    scrollPaddingEnd: phone ? 0 : headRow,
    getItemKey: useCallback((index: number) => entries[index]?.id ?? index, [entries]),
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the row height is what is measured
  useEffect(() => virtual.measure(), [height, virtual]);

  const items = virtual.getVirtualItems();
  return {
    visible: {
      rows: items.flatMap(({ index }) => {
        const entry = entries[index];
        return entry ? [{ entry, index }] : [];
      }),
      top: items[0]?.start ?? 0,
      bottom: virtual.getTotalSize() - (items.at(-1)?.end ?? 0),
    },
    scrollTo: (index) => virtual.scrollToIndex(index),
  };
}

function RefreshOrder({ moved, onClick }: { moved: number; onClick(): void }) {
  return (
    <button
      type="button"
      onClick={onClick}
      className="layer-in absolute top-11 left-1/2 z-20 flex h-7 -translate-x-1/2 items-center gap-1.5 rounded-full bg-accent px-3 text-12 font-medium text-on-accent shadow-menu"
    >
      <RefreshCw className="size-3" aria-hidden />
      {text.table.refreshOrder(moved)}
    </button>
  );
}

function Waiting({ phone, height }: { phone: boolean; height: number }) {
  return (
    <div role="status" aria-label={text.common.loading}>
      {!phone && <div className="h-9 border-b border-line" />}
      {Array.from({ length: 12 }, (_, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: all items are identical
        <div key={i} className="flex items-center gap-6 border-b border-hair px-6 max-md:px-4" style={{ height }}>
          <Skeleton className="w-4 max-md:hidden" />
          <Skeleton className="w-40" />
          <Skeleton className="w-28 max-md:hidden" />
          <Skeleton className="w-36 max-md:hidden" />
          <Skeleton className="ml-auto w-24" />
        </div>
      ))}
    </div>
  );
}
