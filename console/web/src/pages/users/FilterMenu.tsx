import { ListFilter } from "lucide-react";
import { addTerm, hasTerm, removeTerm } from "@/filter";
import { text } from "@/text";
import { userWords } from "@/text/users";
import { Button, Menu, MenuCheck, MenuGroup } from "@/ui";

const t = userWords.filters;

/** Writes words into the filter line, so that people learn them. */
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
  return (
    <Menu trigger={<Button icon={ListFilter}>{text.table.filter}</Button>} label={text.table.filterBy}>
      {parts
        .filter(([, terms]) => terms.length > 0)
        .map(([label, terms]) => (
          <MenuGroup key={label} label={label}>
            {terms.map((term) => (
              <MenuCheck
                key={term}
                checked={hasTerm(value, term)}
                onChange={(on) => onChange(on ? addTerm(value, term) : removeTerm(value, term))}
              >
                <span className="flex flex-1 justify-between gap-6">
                  {t.words[term] ?? term}
                  {t.words[term] && <span className="font-mono text-11 text-ink-3">{term}</span>}
                </span>
              </MenuCheck>
            ))}
          </MenuGroup>
        ))}
    </Menu>
  );
}
