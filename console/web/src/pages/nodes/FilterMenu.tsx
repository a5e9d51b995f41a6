import { ListFilter } from "lucide-react";
import { useMemo } from "react";
import type { Node } from "@/api";
import { addTerm, hasTerm, removeTerm } from "@/filter";
import { text } from "@/text";
import { Button, Menu, MenuCheck, MenuGroup } from "@/ui";

const t = text.nodes.filters;

/** Writes words into the filter line, so that people learn them. */
export function NodeFilterMenu({
  nodes,
  value,
  onChange,
}: {
  nodes: readonly Node[];
  value: string;
  onChange(value: string): void;
}) {
  const tags = useMemo(() => [...new Set(nodes.flatMap((node) => node.tags))].sort().slice(0, 30), [nodes]);
  const systems = useMemo(
    () => [...new Set(nodes.map((node) => node.os.toLowerCase()).filter(Boolean))].sort().slice(0, 8),
    [nodes],
  );
  const groups: [string, string[]][] = [
    [t.state, ["is:online", "is:offline", "is:expired", "is:waiting"]],
    [t.kind, ["is:exit", "is:router", "is:ephemeral"]],
    [t.seen, ["seen:>30d", "seen:>90d"]],
    [t.system, systems.map((os) => `os:${os}`)],
    [t.tags, tags],
  ];
  return (
    <Menu trigger={<Button icon={ListFilter}>{text.table.filter}</Button>} label={text.table.filterBy}>
      {groups
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
