import { type AccessRow, ChangeSign, changeOf, linesOf, PrincipalName, RuleLines, shortPorts } from "@/access";
import type { Fields } from "@/filter";
import { compareText, printable } from "@/text";
import { accessMap } from "@/text/access";
import { Badge, type Column, textColumn } from "@/ui";

const t = accessMap;

const names = (name: string, word: string) => name.toLowerCase() === word || name.toLowerCase().includes(word);

/** What filter terms mean for a row. */
export const rowFilter: Fields<AccessRow> = {
  text: (row, word) =>
    names(row.from.name, word) || names(row.to.name, word) || row.cell.ports.join(" ").includes(word),
  fields: {
    from: (row, value) => names(row.from.name, value),
    to: (row, value) => names(row.to.name, value),
    port: (row, value) => opens(row.cell.ports, value),
    line: (row, value) => linesOf(row.rules).some((line) => String(line) === value),
    is: (row, value) => changeOf(row.cell) === value,
  },
};

/** Whether a port is in "ports 22, 8000-8100"; for "all", whether every port is. */
export function opens(ports: readonly string[], value: string): boolean {
  const wanted = Number(value);
  return ports.some(
    (words) =>
      words.endsWith("all ports") ||
      [...words.matchAll(/(\d+)(?:-(\d+))?/g)].some(
        ([, first, last]) => Number(first) <= wanted && wanted <= Number(last ?? first),
      ),
  );
}

const changeWords = (row: AccessRow) => {
  const { gained, lost } = row.cell;
  return [
    gained.length > 0 && `${t.draft.gained} ${shortPorts(gained)}`,
    lost.length > 0 && `${t.draft.lost} ${shortPorts(lost)}`,
  ]
    .filter(Boolean)
    .join(", ");
};

const comments = (row: AccessRow) => [...new Set(row.rules.map((use) => use.rule.comment).filter(Boolean))].join(" ");

export function accessColumns(draft: boolean): Column<AccessRow>[] {
  const columns: Column<AccessRow>[] = [
    textColumn({
      id: "from",
      title: t.table.from,
      fixed: true,
      width: 260,
      value: (row) => row.from.name,
      cell: (row) => <PrincipalName principal={row.from} link />,
    }),
    textColumn({
      id: "to",
      title: t.table.to,
      fixed: true,
      width: 260,
      value: (row) => row.to.name,
      cell: (row) => <PrincipalName principal={row.to} link />,
    }),
    {
      id: "ports",
      title: t.table.ports,
      sort: (a, b) => compareText(shortPorts(a.cell.ports), shortPorts(b.cell.ports)),
      csv: (row) => row.cell.ports.join(", "),
      cell: (row) => <span className="truncate font-mono text-12">{shortPorts(row.cell.ports)}</span>,
    },
    {
      id: "pairs",
      title: t.table.pairs,
      width: 168,
      yields: 1,
      sort: (a, b) => b.cell.pairs - a.cell.pairs,
      csv: (row) => String(row.cell.pairs),
      cell: (row) => (
        <span className="flex items-center gap-2 tabular-nums">
          {row.cell.pairs === row.cell.of ? row.cell.pairs.toLocaleString("en") : t.of(row.cell.pairs, row.cell.of)}
          {row.cell.own && <Badge>{t.own}</Badge>}
        </span>
      ),
    },
    {
      id: "lines",
      title: t.table.lines,
      width: 144,
      yields: 2,
      sort: (a, b) => (linesOf(a.rules)[0] ?? 0) - (linesOf(b.rules)[0] ?? 0),
      csv: (row) => linesOf(row.rules).join(" "),
      cell: (row) => <RuleLines lines={linesOf(row.rules)} most={3} />,
    },
    {
      id: "comment",
      title: t.table.comment,
      width: 280,
      extra: true,
      csv: comments,
      cell: (row) => <span className="truncate text-12 text-ink-2">{printable(comments(row))}</span>,
    },
  ];
  if (!draft) return columns;
  columns.splice(3, 0, {
    id: "change",
    title: t.table.change,
    width: 200,
    sort: (a, b) => Number(!changeOf(a.cell)) - Number(!changeOf(b.cell)),
    csv: changeWords,
    cell: (row) => (
      <span className="flex min-w-0 items-center gap-1">
        <ChangeSign change={changeOf(row.cell)} />
        <span className="truncate text-12">{changeWords(row)}</span>
      </span>
    ),
  });
  return columns;
}
