import { clsx } from "clsx";
import { ArrowDown, ArrowUp } from "lucide-react";
import { type KeyboardEvent, type MouseEvent, memo, type ReactNode } from "react";
import { text } from "@/text";
import { Checkbox } from "../field";
import { isForRow, notePress } from "./click";
import { type Column, sideWidths, widthOf } from "./columns";
import { GroupHead } from "./GroupHead";
import type { DataTableProps, Visible } from "./props";
import { selectionOf } from "./selection";

interface WideTableProps<T> extends DataTableProps<T> {
  /** The columns that fit. */
  shown: readonly Column<T>[];
  /** The IDs of all rows in order, including those that are not visible. */
  ids: readonly string[];
  /** The number of rows and group headings. */
  rowCount: number;
  visible: Visible<T>;
  height: number;
  /** Whether this row is the Tab stop. */
  isActive(id: string): boolean;
  onToggle(id: string, range: boolean): void;
  onFocus(id: string): void;
}

/** The rows with their columns, below a sticky header row. */
export function WideTable<T>(props: WideTableProps<T>) {
  const { label, chosen, shown, rowCount, visible, height, selected, openId, rowName, menu } = props;
  const { isActive, onSelect, onToggle, onFocus, onOpen } = props;
  return (
    <table
      style={{ minWidth: chosen ? widthOf(shown) : undefined }}
      className="w-full table-fixed border-separate border-spacing-0 text-13"
      aria-label={label}
      aria-rowcount={rowCount + 1}
    >
      <Head {...props} />
      <tbody>
        {visible.top > 0 && (
          <tr aria-hidden>
            <td style={{ height: visible.top }} />
          </tr>
        )}
        {visible.rows.map(({ entry, index }) =>
          "head" in entry ? (
            <tr key={entry.id} aria-rowindex={index + 2} style={{ height }}>
              <th
                scope="rowgroup"
                colSpan={shown.length + (onSelect ? 1 : 0) + (menu ? 1 : 0)}
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
              name={rowName(entry.row)}
              index={index}
              height={height}
              columns={shown}
              selected={onSelect ? (selected?.has(entry.id) ?? false) : undefined}
              open={openId === entry.id}
              active={isActive(entry.id)}
              onToggle={onToggle}
              onFocus={onFocus}
              onOpen={onOpen}
              menu={menu}
            />
          ),
        )}
        {visible.bottom > 0 && (
          <tr aria-hidden>
            <td style={{ height: visible.bottom }} />
          </tr>
        )}
      </tbody>
    </table>
  );
}

const cellShape = "border-b px-2 first:pl-6 last:pr-6";

function Head<T>({ shown, ids, sort, onSort, selected, onSelect, menu }: WideTableProps<T>) {
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
  // The column of the row header, which screen readers read before other cells of the row.
  const heading = columns.find((column) => column.fixed)?.id;
  const tint = selected || open ? "bg-picked" : "group-hover/row:bg-canvas";
  return (
    <tr
      data-row={id}
      tabIndex={active ? 0 : -1}
      aria-label={name}
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
      {columns.map((column) => {
        const shape = clsx(cellShape, tint, "overflow-hidden border-hair whitespace-nowrap");
        return column.id === heading ? (
          <th key={column.id} scope="row" className={clsx(shape, "text-left font-normal")}>
            {column.cell(row)}
          </th>
        ) : (
          <td key={column.id} className={shape}>
            {column.cell(row)}
          </td>
        );
      })}
      {menu && (
        <td data-apart className={clsx(cellShape, tint, "border-hair text-right")}>
          {menu(row)}
        </td>
      )}
    </tr>
  );
}) as <T>(props: RowProps<T>) => ReactNode;
