// biome-ignore-all lint/a11y/useSemanticElements: a table element cannot hold rows of which only some are there
// biome-ignore-all lint/a11y/useFocusableInteractive: of a grid only the cells take the focus
/** Who reaches whom at a glance: those who reach down the side, those who are reached along the top. */
import { defaultRangeExtractor, type Range, useVirtualizer } from "@tanstack/react-virtual";
import { clsx } from "clsx";
import { type KeyboardEvent, memo, type PointerEvent, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { type AccessRow, ChangeSign, changeOf, rowId, shortPorts, splitName } from "@/access";
import type { AccessCell, AccessMap, AccessPrincipal } from "@/api";
import { printable } from "@/text";
import { accessMap } from "@/text/access";

const t = accessMap;
const size = { row: 44, column: 96, side: 192, head: 52 };

interface Place {
  row: number;
  column: number;
}

export function Matrix({
  map,
  rows,
  open,
  onOpen,
}: {
  map: AccessMap;
  rows: readonly AccessRow[];
  /** The id of the row whose panel is open. */
  open: string;
  onOpen(from: AccessPrincipal, to: AccessPrincipal): void;
}) {
  const cells = useMemo(() => new Map(rows.map((row) => [row.id, row])), [rows]);
  const scroller = useRef<HTMLDivElement>(null);
  const bands = useBands(scroller);
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
  const key = (event: KeyboardEvent) => {
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
  const width = size.side + map.to.length * size.column;
  return (
    // The grid takes the keys; its cells are what has the focus.
    <div
      ref={scroller}
      role="grid"
      aria-label={t.matrix.label}
      aria-rowcount={map.from.length + 1}
      aria-colcount={map.to.length + 1}
      tabIndex={-1}
      onKeyDown={key}
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
          {along.getVirtualItems().map(({ index, start }) => {
            const principal = map.to[index];
            return (
              principal && (
                <ColumnHead key={principal.name} principal={principal} index={index} left={size.side + start} />
              )
            );
          })}
        </div>
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

/** Only what can be seen is in the page, and what has the focus. */
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

/** Two bands that cross under the pointer. They move without the matrix being drawn anew. */
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

const countWords = (principal: AccessPrincipal) =>
  principal.kind === "route" || principal.kind === "internet" ? t.routers(principal.nodes) : t.nodes(principal.nodes);

function ColumnHead({ principal, index, left }: { principal: AccessPrincipal; index: number; left: number }) {
  const { kind, name } = splitName(principal);
  return (
    <div
      role="columnheader"
      aria-colindex={index + 2}
      aria-label={`${printable(principal.name)}, ${countWords(principal)}`}
      title={printable(principal.name)}
      className="absolute top-0 bottom-0 flex flex-col justify-end overflow-hidden px-2 pb-2 text-left"
      style={{ left, width: size.column }}
    >
      <span className="truncate font-mono text-12 font-medium">{printable(name)}</span>
      <span className="truncate text-11 text-ink-3">{t.kinds[principal.kind] ?? kind}</span>
    </div>
  );
}

const RowHead = memo(function RowHead({ principal }: { principal: AccessPrincipal }) {
  const { kind, name } = splitName(principal);
  return (
    <div
      role="rowheader"
      aria-colindex={1}
      aria-label={`${printable(principal.name)}, ${countWords(principal)}`}
      className="sticky left-0 z-10 flex h-full items-center gap-2 border-r border-b border-line border-b-hair bg-surface pr-3 pl-6"
      style={{ width: size.side }}
    >
      <span className="min-w-0 flex-1">
        <span className="block truncate font-mono text-12 font-medium" title={printable(principal.name)}>
          {printable(name)}
        </span>
        <span className="block truncate text-11 text-ink-3">{t.kinds[principal.kind] ?? kind}</span>
      </span>
      {principal.kind !== "node" && (
        <span className="text-11 text-ink-3 tabular-nums">{principal.nodes.toLocaleString("en")}</span>
      )}
    </div>
  );
});

/** What a draft does to a cell. */
const changeWords = ({ gained, lost }: AccessCell) =>
  [
    gained.length > 0 && `${t.draft.gained} ${gained.join(", ")}`,
    lost.length > 0 && `${t.draft.lost} ${lost.join(", ")}`,
  ]
    .filter(Boolean)
    .join(", ");

const looks = {
  gained: "border border-ok bg-ok-soft",
  lost: "border border-dashed border-bad bg-bad-soft",
  changed: "border border-line-strong bg-warn-soft",
  "": "",
};

const Cell = memo(function Cell({
  id,
  row,
  column,
  left,
  from,
  to,
  found,
  active,
  open,
  onActive,
  onOpen,
}: {
  id: string;
  row: number;
  column: number;
  left: number;
  from: AccessPrincipal;
  to: AccessPrincipal;
  found: AccessRow | undefined;
  active: boolean;
  open: boolean;
  onActive(at: Place): void;
  onOpen(from: AccessPrincipal, to: AccessPrincipal): void;
}) {
  const shown = useRef<HTMLDivElement>(null);
  // What opens beside the grid takes room of it.
  useEffect(() => {
    if (open) shown.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [open]);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the grid takes the keys
    <div
      ref={shown}
      id={id}
      role="gridcell"
      aria-colindex={column + 2}
      aria-selected={open}
      tabIndex={active ? 0 : -1}
      onFocus={() => onActive({ row, column })}
      onClick={() => onOpen(from, to)}
      className={clsx(
        "absolute top-0 bottom-0 cursor-pointer border-r border-b border-hair p-0.5 -outline-offset-2",
        open && !found && "bg-sunken ring-2 ring-accent ring-inset",
      )}
      style={{ left, width: size.column }}
    >
      <span className="sr-only">{t.matrix.cell(printable(from.name), printable(to.name))}</span>
      {found ? <Found row={found} open={open} /> : <span className="sr-only">{t.noAccess}</span>}
    </div>
  );
});

function Found({ row, open }: { row: AccessRow; open: boolean }) {
  const { cell } = row;
  const change = changeOf(cell);
  const whole = cell.pairs === cell.of;
  return (
    <span
      className={clsx(
        "flex h-full flex-col justify-center overflow-hidden rounded px-1.5",
        looks[change] || (whole ? "bg-accent-soft" : "bg-chip"),
        open && "ring-2 ring-accent",
      )}
    >
      <span className="flex items-center gap-0.5">
        <ChangeSign change={change} />
        <span className={clsx("truncate font-mono text-11", whole && !change ? "text-accent-ink" : "text-ink")}>
          {shortPorts(change === "lost" && cell.pairs === 0 ? cell.lost : cell.ports)}
        </span>
      </span>
      <span className="truncate text-11 text-ink-2 tabular-nums">
        {cell.own ? t.own : whole ? cell.pairs.toLocaleString("en") : t.of(cell.pairs, cell.of)}
        <span className="sr-only"> {t.pairWord}</span>
      </span>
      {change && <span className="sr-only">{changeWords(cell)}</span>}
    </span>
  );
}
