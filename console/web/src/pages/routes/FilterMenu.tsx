import { termsOf } from "@/filter";
import type { RouteRow } from "@/routes";
import { compareText } from "@/text";
import { words } from "@/text/routes";
import { FilterButton, FilterGroups } from "@/ui";

const t = words.filters;

interface Props {
  rows: readonly RouteRow[];
  value: string;
  onChange(value: string): void;
}

export const RouteFilterMenu = (props: Props) => (
  <FilterButton>
    <Groups {...props} />
  </FilterButton>
);

function Groups({ rows, value, onChange }: Props) {
  const of = (field: string, values: (row: RouteRow) => readonly string[]) =>
    termsOf(field, rows.flatMap(values).sort(compareText));
  return (
    <FilterGroups
      groups={[
        [t.state, ["is:waiting", "is:serving", "is:standby", "is:offline", "is:unoffered"]],
        [t.remarks, rows.some((row) => row.overlaps.length > 0) ? ["is:overlapping"] : []],
      ]}
      more={[
        [t.router, of("node", (row) => [row.node.givenName])],
        [t.tags, of("tag", (row) => row.node.tags.map((tag) => tag.replace(/^tag:/, "")))],
        [t.owner, of("user", (row) => (row.node.tags.length === 0 && row.node.user ? [row.node.user.name] : []))],
      ]}
      words={t.words}
      value={value}
      onChange={onChange}
    />
  );
}
