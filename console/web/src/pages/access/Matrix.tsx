// biome-ignore-all lint/a11y/useSemanticElements: a table element cannot be virtualized
// biome-ignore-all lint/a11y/useFocusableInteractive: only the cells of a grid take the focus
/** A matrix of who can reach whom: sources down the side, destinations along the top. */
import { defaultRangeExtractor, type Range, useVirtualizer, type VirtualItem } from "@tanstack/react-virtual";
import { type KeyboardEvent, type PointerEvent, useCallback, useMemo, useRef, useState } from "react";
import { type AccessRow, rowId } from "@/access";
import type { AccessMap, AccessPrincipal } from "@/api";
import { accessMap } from "@/text/access";
import { Cell, ColumnHead, type Place, RowHead, size } from "./cells";

const t = accessMap;

export function Matrix({
  map,
  rows,
  open,
  onOpen,
}: {
  map: AccessMap;
  rows: readonly AccessRow[];
  /** The ID of the row whose panel is open. */
  open: string;
  onOpen(from: AccessPrincipal, to: AccessPrincipal): void;
}) {
  const cells = useMemo(() => new Map(rows.map((row) => [row.id, row])), [rows]);
  const scroller = useRef<HTMLDivElement>(null);
  const bands = useBands(scroller);
  const { at, setActive, down, along, onKeyDown } = useFocusedCell(map, scroller, onOpen);
  const width = size.side + map.to.length * size.column;
  return (
    // The grid handles the keys; its cells have the focus.
    <div
      ref={scroller}
      role="grid"
      aria-label={t.matrix.label}
      aria-rowcount={map.from.length + 1}
      aria-colcount={map.to.length + 1}
      tabIndex={-1}
      onKeyDown={onKeyDown}
      onPointerMove={bands.move}
      onPointerLeave={bands.leave}
      className="relative min-h-0 flex-1 overflow-auto bg-surface outline-none"
      style={{ scrollPaddingLeft: size.side, scrollPaddingTop: size.head }}
    >
      <div role="presentation" className="relative" style={{ width, height: size.head + map.from.length * size.row }}>
        <div
          ref={bands.row}
          aria-hidden
          className="pointer-events-none absolute left-0 hidden bg-sunken/70"
          style={{ width, height: size.row }}
        />
        <div
          ref={bands.column}
          aria-hidden
          className="pointer-events-none absolute top-0 bottom-0 hidden bg-sunken/70"
          style={{ width: size.column }}
        />
        <TitleRow principals={map.to} shown={along.getVirtualItems()} width={width} />
        {down.getVirtualItems().map(({ index, start }) => {
          const from = map.from[index];
          if (!from) return null;
          return (
            <div
              key={from.name}
              role="row"
              aria-rowindex={index + 2}
              className="absolute left-0"
              style={{ top: size.head + start, width, height: size.row }}
            >
              <RowHead principal={from} />
              {along.getVirtualItems().map((column) => {
                const to = map.to[column.index];
                if (!to) return null;
                return (
                  <Cell
                    key={to.name}
                    id={cellId(index, column.index)}
                    row={index}
                    column={column.index}
                    left={size.side + column.start}
                    from={from}
                    to={to}
                    found={cells.get(rowId(from, to))}
                    active={index === at.row && column.index === at.column}
                    open={open === rowId(from, to)}
                    onActive={setActive}
                    onOpen={onOpen}
                  />
                );
              })}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function TitleRow({
  principals,
  shown,
  width,
}: {
  principals: readonly AccessPrincipal[];
  shown: readonly VirtualItem[];
  width: number;
}) {
  return (
    <div
      role="row"
      aria-rowindex={1}
      className="sticky top-0 z-20 border-b border-line bg-surface"
      style={{ width, height: size.head }}
    >
      <div
        role="columnheader"
        aria-colindex={1}
        className="sticky left-0 z-10 flex h-full items-end border-r border-line bg-surface pb-2 pl-6 text-12 text-ink-2"
        style={{ width: size.side }}
      >
        {t.matrix.corner}
      </div>
      {shown.map(({ index, start }) => {
        const principal = principals[index];
        return (
          principal && <ColumnHead key={principal.name} principal={principal} index={index} left={size.side + start} />
        );
      })}
    </div>
  );
}

/** The focused cell, the keys that move it, and the rows and columns to render around it. */
function useFocusedCell(
  map: AccessMap,
  scroller: React.RefObject<HTMLDivElement | null>,
  onOpen: (from: AccessPrincipal, to: AccessPrincipal) => void,
) {
  const [active, setActive] = useState<Place>({ row: 0, column: 0 });
  const at = {
    row: Math.min(active.row, map.from.length - 1),
    column: Math.min(active.column, map.to.length - 1),
  };
  const down = useAxis(scroller, map.from.length, size.row, at.row, false);
  const along = useAxis(scroller, map.to.length, size.column, at.column, true);
  const go = (to: Place) => {
    const next = {
      row: Math.max(0, Math.min(to.row, map.from.length - 1)),
      column: Math.max(0, Math.min(to.column, map.to.length - 1)),
    };
    setActive(next);
    down.scrollToIndex(next.row);
    along.scrollToIndex(next.column);
    requestAnimationFrame(() => document.getElementById(cellId(next.row, next.column))?.focus());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const [from, to] = [map.from[at.row], map.to[at.column]];
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (from && to) onOpen(from, to);
      return;
    }
    const step = steps(event, map);
    if (!step) return;
    event.preventDefault();
    go({ row: at.row + step.row, column: at.column + step.column });
  };
  return { at, setActive, down, along, onKeyDown };
}

const cellId = (row: number, column: number) => `cell-${row}-${column}`;

function steps(event: KeyboardEvent, map: AccessMap): Place | undefined {
  const end = Math.max(map.from.length, map.to.length);
  const page = 8;
  const all = event.ctrlKey || event.metaKey;
  return {
    ArrowUp: { row: -1, column: 0 },
    ArrowDown: { row: 1, column: 0 },
    ArrowLeft: { row: 0, column: -1 },
    ArrowRight: { row: 0, column: 1 },
    PageUp: { row: -page, column: 0 },
    PageDown: { row: page, column: 0 },
    Home: { row: all ? -end : 0, column: -end },
    End: { row: all ? end : 0, column: end },
  }[event.key];
}

/** Only the visible part and the focused cell are rendered. */
function useAxis(
  scroller: React.RefObject<HTMLDivElement | null>,
  count: number,
  each: number,
  active: number,
  horizontal: boolean,
) {
  return useVirtualizer({
    count,
    horizontal,
    getScrollElement: () => scroller.current,
    estimateSize: () => each,
    overscan: 3,
    initialRect: { width: 1200, height: 800 },
    scrollPaddingEnd: horizontal ? size.side : size.head,
    rangeExtractor: useCallback(
      (range: Range) => {
        const seen = defaultRangeExtractor(range);
        return seen.includes(active) || active < 0 ? seen : [...seen, active].sort((a, b) => a - b);
      },
      [active],
    ),
  });
}

const show = (band: HTMLDivElement | null, on: boolean) => band?.classList.toggle("hidden", !on);

/** Two bands that cross under the pointer. They move without rendering the matrix again. */
function useBands(scroller: React.RefObject<HTMLDivElement | null>) {
  const row = useRef<HTMLDivElement>(null);
  const column = useRef<HTMLDivElement>(null);
  const move = (event: PointerEvent) => {
    const box = scroller.current?.getBoundingClientRect();
    if (!box || !scroller.current || event.pointerType !== "mouse") return;
    const x = event.clientX - box.left + scroller.current.scrollLeft - size.side;
    const y = event.clientY - box.top + scroller.current.scrollTop - size.head;
    show(row.current, y >= 0);
    show(column.current, x >= 0);
    if (row.current) row.current.style.top = `${size.head + Math.floor(y / size.row) * size.row}px`;
    if (column.current) column.current.style.left = `${size.side + Math.floor(x / size.column) * size.column}px`;
  };
  const leave = () => {
    show(row.current, false);
    show(column.current, false);
  };
  return { row, column, move, leave };
}
