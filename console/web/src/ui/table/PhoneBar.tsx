import { text } from "@/text";
import { Button } from "../button";
import { Checkbox, Select } from "../field";
import type { Column } from "./columns";

/** What the row of titles is on a wide screen: the order of a list, and the choice of its rows. */
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
  /** Whether rows have boxes; undefined where nothing is chosen. */
  choosing?: boolean;
  onChoosing(on: boolean): void;
  all: boolean | "indeterminate";
  onAll(): void;
}) {
  const named = sort.replace(/^-/, "");
  const sortable = columns.filter((column) => column.sort && (!column.extra || column.id === named));
  return (
    <div className="flex h-12 shrink-0 items-center gap-3 border-b border-line bg-surface px-4">
      {choosing && <Checkbox hideLabel label={text.table.selectAll} checked={all} onChange={onAll} />}
      <Select
        aria-label={text.table.order}
        className="min-w-0 flex-1"
        value={sort}
        onChange={(event) => onSort(event.target.value)}
      >
        <option value="">{text.table.usualOrder}</option>
        {sortable.flatMap(({ id, title }) => [
          <option key={id} value={id}>
            {text.table.ascending(title)}
          </option>,
          <option key={`-${id}`} value={`-${id}`}>
            {text.table.descending(title)}
          </option>,
        ])}
      </Select>
      {choosing !== undefined && (
        <Button onClick={() => onChoosing(!choosing)}>{choosing ? text.table.choosingDone : text.table.choose}</Button>
      )}
    </div>
  );
}
