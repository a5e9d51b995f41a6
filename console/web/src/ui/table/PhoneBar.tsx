import { ArrowUpDown } from "lucide-react";
import { text } from "@/text";
import { Button } from "../button";
import { Checkbox } from "../field";
import type { Column } from "./columns";

/** The phone's counterpart of the header row: the sort order of a list, and the selection of its rows. */
export function PhoneBar<T>({
  columns,
  sort,
  onSort,
  choosing,
  onChoosing,
  all,
  onAll,
}: {
  columns: readonly Column<T>[];
  sort: string;
  onSort(sort: string): void;
  /** Whether rows have checkboxes; undefined if rows cannot be selected. */
  choosing?: boolean;
  onChoosing(on: boolean): void;
  all: boolean | "indeterminate";
  onAll(): void;
}) {
  const named = sort.replace(/^-/, "");
  const sortable = columns.filter((column) => column.sort && (!column.extra || column.id === named));
  const orders = [
    { value: "", label: text.table.usualOrder },
    ...sortable.flatMap(({ id, title }) => [
      { value: id, label: text.table.ascending(title) },
      { value: `-${id}`, label: text.table.descending(title) },
    ]),
  ];
  return (
    <div className="flex h-10 shrink-0 items-center gap-3 border-b border-line bg-surface px-4">
      {choosing && <Checkbox hideLabel label={text.table.selectAll} checked={all} onChange={onAll} />}
      <label className="relative -ml-2 flex h-8 min-w-0 items-center gap-1.5 rounded-md px-2 text-12 font-medium text-ink-2 has-focus-visible:outline-2 has-focus-visible:outline-accent">
        <ArrowUpDown className="size-3.5 shrink-0 text-ink-3" aria-hidden />
        <span className="truncate" aria-hidden>
          {orders.find((order) => order.value === sort)?.label ?? text.table.usualOrder}
        </span>
        <select
          aria-label={text.table.order}
          className="absolute inset-0 appearance-none text-[16px] opacity-0"
          value={sort}
          onChange={(event) => onSort(event.target.value)}
        >
          {orders.map(({ value, label }) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </label>
      {choosing !== undefined && (
        <Button look="ghost" className="-mr-3 ml-auto text-12!" onClick={() => onChoosing(!choosing)}>
          {choosing ? text.table.choosingDone : text.table.choose}
        </Button>
      )}
    </div>
  );
}
