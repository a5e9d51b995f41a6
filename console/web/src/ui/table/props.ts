import type { ReactNode } from "react";
import type { Column } from "./columns";
import type { Entry, Group } from "./order";

export interface DataTableProps<T> {
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
  /** Changes when the user asks for other rows: the rows are then sorted again even under the pointer. */
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

/** The part of a list that can be seen, and how high the rest above and below it is. */
export interface Visible<T> {
  rows: readonly { entry: Entry<T>; index: number }[];
  top: number;
  bottom: number;
}
