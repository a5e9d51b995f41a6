import { useMemo } from "react";
import type { AccessRow } from "@/access";
import type { AccessPrincipal } from "@/api";
import { accessMap } from "@/text/access";
import { FilterMenu } from "@/ui";

const t = accessMap.filters;
const mostNames = 15;
const mostPorts = 6;

/** Offers filter terms that match some of these rows. */
export function MapFilterMenu({
  rows,
  draft,
  value,
  onChange,
}: {
  rows: readonly AccessRow[];
  /** Whether the rows show what a draft changes. */
  draft: boolean;
  value: string;
  onChange(value: string): void;
}) {
  const groups = useMemo((): [string, string[]][] => {
    const named = (side: "from" | "to") =>
      [...new Set(rows.flatMap((row) => nameOf(row[side])))].sort().slice(0, mostNames);
    return [
      [t.draft, draft ? ["is:gained", "is:lost", "is:changed"] : []],
      [t.ports, ["port:all", ...usualPorts(rows).map((port) => `port:${port}`)]],
      [t.from, named("from").map((name) => `from:${name}`)],
      [t.to, named("to").map((name) => `to:${name}`)],
    ];
  }, [rows, draft]);
  return <FilterMenu groups={groups} words={t.words} value={value} onChange={onChange} />;
}

/** Only groups and tags: there may be thousands of users and nodes, whose names can be typed. */
const nameOf = ({ kind, name }: AccessPrincipal) => (kind === "group" || kind === "tag" ? [name] : []);

/** The single ports that are open in the most rows, sorted. */
export function usualPorts(rows: readonly AccessRow[]): number[] {
  const count = new Map<number, number>();
  for (const row of rows) {
    const ports = new Set(row.cell.ports.flatMap((said) => said.match(/(?<![\d-])\d+(?![\d-])/g) ?? []));
    for (const port of ports) count.set(Number(port), (count.get(Number(port)) ?? 0) + 1);
  }
  return [...count]
    .sort((a, b) => b[1] - a[1] || a[0] - b[0])
    .slice(0, mostPorts)
    .map(([port]) => port)
    .sort((a, b) => a - b);
}
