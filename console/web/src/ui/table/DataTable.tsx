import { useVirtualizer } from "@tanstack/react-virtual";
import { clsx } from "clsx";
import { ArrowDown, ArrowUp, RefreshCw } from "lucide-react";
import {
  type KeyboardEvent,
  type MouseEvent,
  memo,
  type ReactNode,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { text } from "@/text";
import { Checkbox } from "../field";
import { usePreferences } from "../preferences";
import { type Shortcut, useShortcuts } from "../shortcuts";
import { Delayed, Skeleton } from "../states";
import { useMedia } from "../useMedia";
import { useWidth } from "../useWidth";
import { isForRow, isTapOnLink, notePress } from "./click";
import { type Column, columnsFitting, sideWidths, widthOf } from "./columns";
import { type Entry, freeze, type Group, layOut } from "./order";
import { PhoneBar } from "./PhoneBar";

interface DataTableProps<T> {
  /** What the list is, for people who hear it. */
  label: string;
  columns: readonly Column<T>[];
  /** The columns that the address names; empty for the usual ones. */
  chosen?: string;
  /** The rows that fit the filter, in any order. */
  rows: readonly T[];
  /** Nothing is known yet. */
  loading?: boolean;
  /** What stands there when there are no rows. */
  empty: ReactNode;
  rowId(row: NoInfer<T>): string;
  rowName(row: T): string;
  /** A column's id, with a minus for descending; empty for the usual order. */
  sort: string;
  onSort(sort: string): void;
  /** The usual order. */
  usual(a: T, b: T): number;
  /** Groups of the rows in their usual order, when there is no sort. */
  group?(rows: readonly T[]): Group<T>[];
  /** Changes when the person asks for other rows: then the order is made anew even under the pointer. */
  asked: string;
  selected?: ReadonlySet<string>;
  onSelect?(selected: ReadonlySet<string>): void;
  onOpen?(row: T): void;
  /** The row whose details are open. */
  openId?: string;
  /** The last cell: a menu of what can be done with the row. */
  menu?(row: T): ReactNode;
  /** Keys for the row that has the focus. */
  rowKeys?: { keys: string; label: string; run(row: T): void }[];
  /** The row on a phone, in two lines. */
  phone(row: T): ReactNode;
}

const heights = { comfortable: 40, compact: 32, phone: 61 };
const phoneHead = 37;
/** The row of titles, which stays on top and takes this from the room for rows. */
const headRow = 36;

/**
 * The one list of the console. Only rows that can be seen are in the page. It is drawn anew when a property changes: what
 * is not stable costs a drawing for each letter that is typed into a filter.
 */
export const DataTable = memo(Table) as typeof Table;

function Table<T>(props: DataTableProps<T>) {
  const { rows, rowId, sort, columns, usual, group, asked, selected, onSelect, onOpen } = props;
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

  const headHeight = (entry: Entry<T> | undefined) => (phone && entry && "head" in entry ? phoneHead : height);
  const virtual = useVirtualizer({
    count: entries.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => headHeight(entries[index]),
    overscan: 8,
    initialRect: { width: 1200, height: 800 },
    scrollPaddingEnd: phone ? 0 : headRow,
    getItemKey: useCallback((index: number) => entries[index]?.id ?? index, [entries]),
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the size of a row is what is measured
  useEffect(() => virtual.measure(), [height, virtual]);

  const toggle = useToggle(ids, selected, onSelect);
  const [asksBoxes, setAsksBoxes] = useState(false);
  const boxes = onSelect && (asksBoxes || (selected?.size ?? 0) > 0);
  const { active, setActive } = useRowFocus(
    props,
    entries,
    ids,
    scroller,
    (index) => virtual.scrollToIndex(index),
    toggle,
  );

  const items = virtual.getVirtualItems();
  const top = items[0]?.start ?? 0;
  const bottom = virtual.getTotalSize() - (items.at(-1)?.end ?? 0);
  const visible = items.flatMap((item) => {
    const entry = entries[item.index];
    return entry ? [{ entry, index: item.index }] : [];
  });
  const isActive = (id: string) => id === active || (active === null && id === ids[0]);

  if (!props.loading && rows.length === 0)
    return <div className="min-h-0 flex-1 overflow-auto bg-surface">{props.empty}</div>;
  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      {moved > 0 && (
        <button
          type="button"
          onClick={refresh}
          className="layer-in absolute top-11 left-1/2 z-20 flex h-7 -translate-x-1/2 items-center gap-1.5 rounded-full bg-accent px-3 text-12 font-medium text-on-accent shadow-menu"
        >
          <RefreshCw className="size-3" aria-hidden />
          {text.table.refreshOrder(moved)}
        </button>
      )}
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
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must scroll by keyboard too
        tabIndex={0}
        onPointerEnter={(e) => e.pointerType === "mouse" && hold("pointer")}
        onPointerLeave={() => release("pointer")}
        onFocus={(e) => e.target !== e.currentTarget && hold("focus")}
        onBlur={(e) => !e.currentTarget.contains(e.relatedTarget) && release("focus")}
        className={clsx(
          "min-h-0 flex-1 overflow-auto bg-surface -outline-offset-2",
          // The bar of the chosen rows covers none that can be scrolled to.
          (selected?.size ?? 0) > 0 && (phone ? "pb-28" : "pb-20"),
        )}
      >
        {props.loading ? (
          <Delayed>
            <Waiting phone={phone} height={height} />
          </Delayed>
        ) : phone ? (
          <ul aria-label={props.label}>
            {top > 0 && <li aria-hidden style={{ height: top }} />}
            {visible.map(({ entry }) =>
              "head" in entry ? (
                <li
                  key={entry.id}
                  className="flex items-center border-b border-line bg-canvas px-4 text-12"
                  style={{ height: phoneHead }}
                >
                  <GroupHead group={entry.head} />
                </li>
              ) : (
                // biome-ignore lint/a11y/useKeyWithClickEvents: what it holds opens it by keyboard
                <li
                  key={entry.id}
                  onPointerDown={notePress}
                  onClickCapture={(event) => {
                    // The name is a link as wide as the row: while rows are chosen it chooses too.
                    if (!boxes || !isTapOnLink(event)) return;
                    event.preventDefault();
                    event.stopPropagation();
                    toggle(entry.id, false);
                  }}
                  onClick={(event) => {
                    if (!isForRow(event)) return;
                    if (boxes) toggle(entry.id, false);
                    else onOpen?.(entry.row);
                  }}
                  className={clsx(
                    "flex items-center gap-3 border-b border-hair px-4",
                    boxes && selected?.has(entry.id) && "bg-picked shadow-[inset_2px_0_0_var(--accent)]",
                  )}
                  style={{ height }}
                >
                  {boxes && (
                    <Checkbox
                      hideLabel
                      label={text.table.select(props.rowName(entry.row))}
                      checked={selected?.has(entry.id) ?? false}
                      onChange={() => toggle(entry.id, false)}
                    />
                  )}
                  {props.phone(entry.row)}
                </li>
              ),
            )}
            {bottom > 0 && <li aria-hidden style={{ height: bottom }} />}
          </ul>
        ) : (
          <table
            style={{ minWidth: props.chosen ? widthOf(shown) : undefined }}
            className="w-full table-fixed border-separate border-spacing-0 text-13"
            aria-label={props.label}
            aria-rowcount={entries.length + 1}
          >
            <Head {...props} shown={shown} ids={ids} />
            <tbody>
              {top > 0 && (
                <tr aria-hidden>
                  <td style={{ height: top }} />
                </tr>
              )}
              {visible.map(({ entry, index }) =>
                "head" in entry ? (
                  <tr key={entry.id} aria-rowindex={index + 2} style={{ height }}>
                    <th
                      scope="rowgroup"
                      colSpan={shown.length + (onSelect ? 1 : 0) + (props.menu ? 1 : 0)}
                      className="border-b border-line bg-canvas px-6 text-left text-12 font-normal"
                    >
                      <GroupHead group={entry.head} />
                    </th>
                  </tr>
                ) : (
                  <Row
                    key={entry.id}
                    id={entry.id}
                    row={entry.row}
                    name={props.rowName(entry.row)}
                    index={index}
                    height={height}
                    columns={shown}
                    selected={onSelect ? (selected?.has(entry.id) ?? false) : undefined}
                    open={props.openId === entry.id}
                    active={isActive(entry.id)}
                    onToggle={toggle}
                    onFocus={setActive}
                    onOpen={onOpen}
                    menu={props.menu}
                  />
                ),
              )}
              {bottom > 0 && (
                <tr aria-hidden>
                  <td style={{ height: bottom }} />
                </tr>
              )}
            </tbody>
          </table>
        )}
      </div>
    </div>
  );
}

export function sortRows<T>(
  rows: readonly T[],
  sort: string,
  columns: readonly Column<T>[],
  usual: (a: T, b: T) => number,
): T[] {
  const down = sort.startsWith("-");
  const compare = columns.find((c) => c.id === sort.slice(down ? 1 : 0))?.sort;
  if (!compare) return [...rows].sort(usual);
  return [...rows].sort((a, b) => (down ? -1 : 1) * compare(a, b) || usual(a, b));
}

/** Keeps the order while the pointer or the focus is in the list; other reasons to reorder than new data are obeyed. */
function useFrozen<T>(laidOut: readonly Entry<T>[], key: string) {
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

/** Selects a row, or with Shift all from the last one to it. */
function useToggle(
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

/** One row can be reached by Tab; j and k move from row to row. */
function useRowFocus<T>(
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

/** Whether all rows are selected, and the way to select all or none. */
function selectionOf(
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

const cellShape = "border-b px-2 first:pl-6 last:pr-6";

function Head<T>({
  shown,
  ids,
  sort,
  onSort,
  selected,
  onSelect,
  menu,
}: DataTableProps<T> & { shown: readonly Column<T>[]; ids: readonly string[] }) {
  const { all, onAll } = selectionOf(ids, selected, onSelect);
  return (
    <thead className="sticky top-0 z-10 bg-surface">
      <tr aria-rowindex={1}>
        {onSelect && (
          <td className={clsx(cellShape, "h-9 border-line")} style={{ width: sideWidths.select }}>
            <Checkbox hideLabel label={text.table.selectAll} checked={all} onChange={onAll} />
          </td>
        )}
        {shown.map((column) => {
          const state = sort === column.id ? "ascending" : sort === `-${column.id}` ? "descending" : undefined;
          const next = state === "ascending" ? `-${column.id}` : state === "descending" ? "" : column.id;
          return (
            <th
              key={column.id}
              scope="col"
              aria-sort={state}
              style={{ width: column.width }}
              className={clsx(cellShape, "h-9 truncate border-line text-left text-12 font-medium text-ink-2")}
            >
              {column.sort ? (
                <button
                  type="button"
                  onClick={() => onSort(next)}
                  className="-mx-1 inline-flex h-6 max-w-full items-center gap-1 rounded px-1 hover:text-ink"
                >
                  <span className="truncate">{column.title}</span>
                  {state === "ascending" && <ArrowUp className="size-3 shrink-0" aria-hidden />}
                  {state === "descending" && <ArrowDown className="size-3 shrink-0" aria-hidden />}
                </button>
              ) : (
                column.title
              )}
            </th>
          );
        })}
        {menu && (
          <th scope="col" className={clsx(cellShape, "border-line")} style={{ width: sideWidths.menu }}>
            <span className="sr-only">{text.table.actions}</span>
          </th>
        )}
      </tr>
    </thead>
  );
}

interface RowProps<T> {
  id: string;
  row: T;
  name: string;
  index: number;
  height: number;
  columns: readonly Column<T>[];
  selected: boolean | undefined;
  open: boolean;
  active: boolean;
  onToggle(id: string, range: boolean): void;
  onFocus(id: string): void;
  onOpen?(row: T): void;
  menu?(row: T): ReactNode;
}

const Row = memo(function Row<T>({
  id,
  row,
  name,
  index,
  height,
  columns,
  selected,
  open,
  active,
  onToggle,
  onFocus,
  onOpen,
  menu,
}: RowProps<T>) {
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.target !== event.currentTarget || !onOpen) return;
    event.preventDefault();
    onOpen(row);
  };
  const onClick = (event: MouseEvent) => {
    if (onOpen && !open && isForRow(event)) onOpen(row);
  };
  const tint = selected || open ? "bg-picked" : "group-hover/row:bg-canvas";
  return (
    <tr
      data-row={id}
      tabIndex={active ? 0 : -1}
      aria-rowindex={index + 2}
      aria-selected={selected}
      onFocus={(event) => event.target === event.currentTarget && onFocus(id)}
      onKeyDown={onKeyDown}
      onPointerDown={notePress}
      onClick={onClick}
      style={{ height }}
      className={clsx("group/row scroll-mt-9 -outline-offset-2", onOpen && "cursor-pointer")}
    >
      {selected !== undefined && (
        <td
          data-apart
          className={clsx(cellShape, tint, "border-hair", selected && "shadow-[inset_2px_0_0_var(--accent)]")}
        >
          <Checkbox
            hideLabel
            label={text.table.select(name)}
            checked={selected}
            onChange={(_, event) => onToggle(id, event?.shiftKey ?? false)}
          />
        </td>
      )}
      {columns.map((column) => (
        <td key={column.id} className={clsx(cellShape, tint, "overflow-hidden border-hair whitespace-nowrap")}>
          {column.cell(row)}
        </td>
      ))}
      {menu && (
        <td data-apart className={clsx(cellShape, tint, "border-hair text-right")}>
          {menu(row)}
        </td>
      )}
    </tr>
  );
}) as <T>(props: RowProps<T>) => ReactNode;

function GroupHead<T>({ group }: { group: Group<T> }) {
  const total = group.total ?? group.rows.length;
  return (
    <span className="flex w-full min-w-0 items-center gap-2">
      <span className="shrink-0 font-semibold text-ink">{group.title}</span>
      <span className="truncate text-ink-3 tabular-nums">
        {total.toLocaleString("en")}
        {group.note && ` · ${group.note}`}
      </span>
      {total > group.rows.length && (
        <button
          type="button"
          className="h-6 shrink-0 rounded px-1 font-medium text-accent-ink hover:underline"
          onClick={group.onShowAll}
        >
          {text.table.showAll(total)}
        </button>
      )}
    </span>
  );
}

function Waiting({ phone, height }: { phone: boolean; height: number }) {
  return (
    <div role="status" aria-label={text.common.loading}>
      {!phone && <div className="h-9 border-b border-line" />}
      {Array.from({ length: 12 }, (_, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are all the same
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
