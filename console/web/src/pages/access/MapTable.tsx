/** The map as rows that can be sorted, filtered and exported. */
import { type AccessRow, ChangeSign, changeOf, shortPorts } from "@/access";
import { printable } from "@/text";
import { accessMap } from "@/text/access";
import { DataTable, NoMatch } from "@/ui";
import type { accessColumns } from "./columns";

const t = accessMap;
const rowKey = (row: AccessRow) => row.id;
const rowName = (row: AccessRow) => `${printable(row.from.name)} → ${printable(row.to.name)}`;
const usual = (a: AccessRow, b: AccessRow) => a.cell.from - b.cell.from || a.cell.to - b.cell.to;

export function MapTable({
  rows,
  columns,
  search,
  onSort,
  onOpen,
  onClear,
  loading,
}: {
  rows: readonly AccessRow[];
  columns: ReturnType<typeof accessColumns>;
  search: { sort: string; cols: string; q: string; cell: string; by: string };
  onSort(sort: string): void;
  onOpen(row: AccessRow): void;
  onClear(): void;
  loading: boolean;
}) {
  return (
    <DataTable
      label={t.table.label}
      columns={columns}
      chosen={search.cols}
      rows={rows}
      loading={loading}
      empty={<NoMatch onClear={onClear} />}
      rowId={rowKey}
      rowName={rowName}
      sort={search.sort}
      onSort={onSort}
      usual={usual}
      asked={`${search.by} ${search.q}`}
      onOpen={onOpen}
      openId={search.cell}
      phone={(row) => <PhoneRow row={row} onOpen={onOpen} />}
    />
  );
}

function PhoneRow({ row, onOpen }: { row: AccessRow; onOpen(row: AccessRow): void }) {
  return (
    <button
      type="button"
      onClick={() => onOpen(row)}
      className="flex h-full w-full min-w-0 items-center gap-3 text-left"
    >
      <span className="min-w-0 flex-1">
        <span className="block truncate text-14 font-medium">{rowName(row)}</span>
        <span className="flex items-center gap-1 text-12 text-ink-2">
          <ChangeSign change={changeOf(row.cell)} />
          <span className="truncate font-mono">{shortPorts(row.cell.ports)}</span>
        </span>
      </span>
      <span className="text-12 text-ink-3 tabular-nums">{t.pairs(row.cell.pairs)}</span>
    </button>
  );
}
