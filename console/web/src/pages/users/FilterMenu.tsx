import { userWords } from "@/text/users";
import { FilterMenu } from "@/ui";

const t = userWords.filters;

export function UserFilterMenu({
  groups,
  providers,
  value,
  onChange,
}: {
  groups: readonly string[];
  providers: readonly string[];
  value: string;
  onChange(value: string): void;
}) {
  const parts: [string, string[]][] = [
    [t.state, ["is:active", "is:idle", "is:empty"]],
    [t.seen, ["seen:>30d", "seen:>90d"]],
    [t.source, providers.length > 0 ? ["source:local", ...providers.map((name) => `source:${name}`)] : []],
    [t.groups, groups.slice(0, 30)],
  ];
  return <FilterMenu groups={parts} words={t.words} value={value} onChange={onChange} />;
}
