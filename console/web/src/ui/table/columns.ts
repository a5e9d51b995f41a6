import type { ReactNode } from "react";

export interface Column<T> {
  id: string;
  title: string;
  cell(row: T): ReactNode;
  /** Ascending order; without it the column cannot be sorted. */
  sort?(a: T, b: T): number;
  /** The text in an exported file; without it the column is not exported. */
  csv?(row: T): string;
  /** In pixels. One column has none and takes the remaining width. */
  width?: number;
  /** The minimum width of the column without a width. */
  least?: number;
  /** If the columns do not fit, the one with the highest value is hidden first. */
  yields?: number;
  /** Whether the user cannot hide it. */
  fixed?: boolean;
  /** Whether it is hidden by default. */
  extra?: boolean;
}

/** The columns to show: the ones in the URL, or the default ones. */
export function columnsShown<T>(columns: readonly Column<T>[], chosen: string): Column<T>[] {
  if (!chosen) return columns.filter((column) => !column.extra);
  const names = chosen.split(",");
  return columns.filter((column) => column.fixed || names.includes(column.id));
}

/** The default minimum width of the column without a width. */
export const leastWidth = 148;
/** The widths of the checkboxes and menus at the sides. */
export const sideWidths = { select: 48, menu: 56 };

/** The columns that fit. Columns that the user selected are all kept, and the list scrolls. */
export function columnsFitting<T>(columns: readonly Column<T>[], chosen: string, room: number): Column<T>[] {
  const shown = columnsShown(columns, chosen);
  if (chosen || room === 0) return shown;
  const order = shown.filter((column) => column.yields).sort((a, b) => (b.yields ?? 0) - (a.yields ?? 0));
  const kept = new Set(shown);
  for (const column of order) {
    if (widthOf([...kept]) <= room) break;
    kept.delete(column);
  }
  return shown.filter((column) => kept.has(column));
}

export function widthOf<T>(columns: readonly Column<T>[]): number {
  return columns.reduce(
    (sum, column) => sum + (column.width ?? column.least ?? leastWidth),
    sideWidths.select + sideWidths.menu,
  );
}
