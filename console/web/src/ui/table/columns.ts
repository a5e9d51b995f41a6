import type { ReactNode } from "react";

export interface Column<T> {
  id: string;
  title: string;
  cell(row: T): ReactNode;
  /** Ascending order; without it the column cannot be sorted. */
  sort?(a: T, b: T): number;
  /** What stands in a file; without it the column is not exported. */
  csv?(row: T): string;
  /** A width class such as w-[190px]. One column has none and takes the rest. */
  width?: string;
  /** The window width from which it is there, if nobody chose columns. */
  from?: 1024 | 1280 | 1360;
  /** Cannot be taken away. */
  fixed?: boolean;
  /** Not there unless somebody chose it. */
  extra?: boolean;
}

/** The columns to show: those that the address names, or the usual ones. */
export function columnsShown<T>(columns: readonly Column<T>[], chosen: string): Column<T>[] {
  if (!chosen) return columns.filter((column) => !column.extra);
  const names = chosen.split(",");
  return columns.filter((column) => column.fixed || names.includes(column.id));
}

/** The table's own width decides, so that columns give way to an open panel too: the rail takes 216 of the window. */
export const widthClass = { 1024: "@max-[807px]:hidden", 1280: "@max-[1063px]:hidden", 1360: "@max-[1143px]:hidden" };
