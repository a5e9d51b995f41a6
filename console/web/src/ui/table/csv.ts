import { download } from "../download";
import type { Column } from "./columns";

/**
 * A cell of a CSV file. Names come from devices: text that a spreadsheet would evaluate is prefixed with an apostrophe.
 */
export function csvCell(value: string): string {
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function toCSV<T>(columns: readonly Column<T>[], rows: readonly T[]): string {
  const exported = columns.filter((column) => column.csv);
  const lines = [
    exported.map((c) => csvCell(c.title)),
    ...rows.map((row) => exported.map((c) => csvCell(c.csv?.(row) ?? ""))),
  ];
  return lines.map((cells) => `${cells.join(",")}\r\n`).join("");
}

const today = () => new Date().toISOString().slice(0, 10);

export function downloadCSV<T>(what: string, columns: readonly Column<T>[], rows: readonly T[]) {
  download(`${what}-${today()}.csv`, "text/csv", toCSV(columns, rows));
}

export function downloadJSON(what: string, rows: readonly unknown[]) {
  download(`${what}-${today()}.json`, "application/json", `${JSON.stringify(rows, null, 2)}\n`);
}
