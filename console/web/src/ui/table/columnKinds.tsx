import { compareText, printable, text } from "@/text";
import { Time } from "../time";
import type { Column } from "./columns";

/** A column sorted and exported by a text, which is also its cell by default. */
export function textColumn<T>({
  value,
  ...column
}: { value(row: T): string } & Pick<Column<T>, "id" | "title"> & Partial<Column<T>>): Column<T> {
  return {
    sort: (a, b) => compareText(value(a), value(b)),
    csv: value,
    cell: (row) => <span className="block truncate text-ink-2">{printable(value(row))}</span>,
    ...column,
  };
}

/** The same for a time, which may be never. */
export function timeColumn<T>({
  at,
  ...column
}: { at(row: T): string | null } & Pick<Column<T>, "id" | "title"> & Partial<Column<T>>): Column<T> {
  return {
    sort: (a, b) => Date.parse(at(a) ?? "0") - Date.parse(at(b) ?? "0"),
    csv: (row) => at(row) ?? "",
    cell: (row) => {
      const moment = at(row);
      return moment ? (
        <Time at={moment} focusable={false} className="text-ink-2" />
      ) : (
        <span className="text-ink-3">{text.common.never}</span>
      );
    },
    ...column,
  };
}
