import type { ReactNode } from "react";
import type { Column } from "./columns";
import type { Entry, Group } from "./order";

export interface DataTableProps<T> {
  /** The accessible name of the list. */
  label: string;
  columns: readonly Column<T>[];
  /** The columns in the URL; empty for the default ones. */
  chosen?: string;
  /** The rows that match the filter, in any order. */
  rows: readonly T[];
  /** Whether no data has been loaded yet. */
  loading?: boolean;
  /** Shown if there are no rows. */
  empty: ReactNode;
  rowId(row: NoInfer<T>): string;
  rowName(row: T): string;
  /** A column's ID, with a minus for descending; empty for the default order. */
  sort: string;
  onSort(sort: string): void;
  /** The default order. */
  usual(a: T, b: T): number;
  /** Groups the rows, in default order, if there is no sort. */
  group?(rows: readonly T[]): Group<T>[];
  /** Changes when the user asks for other rows: then they are sorted again even under the pointer. */
  asked: string;
  selected?: ReadonlySet<string>;
  onSelect?(selected: ReadonlySet<string>): void;
  onOpen?(row: T): void;
  /** The row whose details are open. */
  openId?: string;
  /** The last cell: a menu of actions on the row. */
  menu?(row: T): ReactNode;
  /** Shortcuts for the focused row. */
  rowKeys?: { keys: string; label: string; run(row: T): void }[];
  /** The row on a phone, in two lines. */
  phone(row: T): ReactNode;
}

/** The visible part of a list, and the heights of the rest above and below it. */
export interface Visible<T> {
  rows: readonly { entry: Entry<T>; index: number }[];
  top: number;
  bottom: number;
}
