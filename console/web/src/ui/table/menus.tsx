import { Columns3, Download, ListFilter } from "lucide-react";
import type { ReactNode } from "react";
import { addTerm, hasTerm, removeTerm } from "@/filter";
import { entry, printable, text } from "@/text";
import { Button } from "../button";
import { Menu, MenuCheck, MenuFold, MenuGroup, MenuItem, MenuLine, MenuRadio } from "../menu";
import { setPreference, usePreferences } from "../preferences";
import { type Column, columnsShown } from "./columns";
import { downloadCSV, downloadJSON } from "./csv";

/** Selects the columns of a list and its density. */
export function ViewMenu<T>({
  columns,
  chosen,
  onChoose,
}: {
  columns: readonly Column<T>[];
  chosen: string;
  onChoose(chosen: string): void;
}) {
  const { density } = usePreferences();
  const shown = columnsShown(columns, chosen).map((column) => column.id);
  const choose = (id: string, on: boolean) =>
    onChoose(
      columns
        .map((c) => c.id)
        .filter((c) => (c === id ? on : shown.includes(c)))
        .join(","),
    );
  return (
    <Menu
      trigger={
        <Button icon={Columns3} className="max-md:hidden">
          {text.table.view}
        </Button>
      }
    >
      <MenuGroup label={text.table.columns}>
        {columns
          .filter((column) => !column.fixed)
          .map((column) => (
            <MenuCheck key={column.id} checked={shown.includes(column.id)} onChange={(on) => choose(column.id, on)}>
              {column.title}
            </MenuCheck>
          ))}
      </MenuGroup>
      {chosen && <MenuItem onSelect={() => onChoose("")}>{text.table.resetColumns}</MenuItem>}
      <MenuLine />
      <MenuGroup label={text.table.density}>
        <MenuRadio
          value={density}
          onChange={(value) => setPreference("density", value)}
          choices={text.settings.densities}
        />
      </MenuGroup>
    </Menu>
  );
}

/** Exports the visible or the selected rows as a file. `what` is its name. */
export function ExportMenu<T>({
  what,
  columns,
  rows,
  selected = false,
}: {
  what: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  selected?: boolean;
}) {
  return (
    <Menu
      trigger={
        <Button icon={Download} look={selected ? "ghost" : "plain"} className="max-md:px-2">
          <span className="max-md:sr-only">{text.table.export}</span>
        </Button>
      }
    >
      <MenuItem onSelect={() => downloadCSV(what, columns, rows)}>
        {selected ? text.table.selectedCSV : text.table.exportCSV}
      </MenuItem>
      <MenuItem onSelect={() => downloadJSON(what, rows)}>
        {selected ? text.table.selectedJSON : text.table.exportJSON}
      </MenuItem>
    </Menu>
  );
}

type Terms = readonly (readonly [title: string, terms: readonly string[]])[];

interface Offered {
  groups: Terms;
  /** Groups with many terms, which are collapsed. */
  more?: Terms;
  words: Readonly<Record<string, string>>;
  value: string;
  onChange(value: string): void;
}

/** Inserts terms into the filter line, so that people learn them. Terms without a description are shown as they are. */
export const FilterMenu = (props: Offered) => (
  <FilterButton>
    <FilterGroups {...props} />
  </FilterButton>
);

/** A FilterMenu whose groups are computed when it is opened, by its children, which render FilterGroups. */
export const FilterButton = ({ children }: { children: ReactNode }) => (
  <Menu trigger={<Button icon={ListFilter}>{text.table.filter}</Button>} label={text.table.filterBy}>
    {children}
  </Menu>
);

export function FilterGroups({ groups, more = [], words, value, onChange }: Offered) {
  const check = (term: string) => (
    <MenuCheck
      key={term}
      checked={hasTerm(value, term)}
      onChange={(on) => onChange(on ? addTerm(value, term) : removeTerm(value, term))}
    >
      <span className="flex flex-1 items-center justify-between gap-6">
        {entry(words, term) ?? <span className="font-mono text-12">{printable(term)}</span>}
        {entry(words, term) && <span className="font-mono text-11 text-ink-3">{term}</span>}
      </span>
    </MenuCheck>
  );
  const folded = more.filter(([, terms]) => terms.length > 0);
  return (
    <>
      {groups
        .filter(([, terms]) => terms.length > 0)
        .map(([title, terms]) => (
          <MenuGroup key={title} label={title}>
            {terms.map(check)}
          </MenuGroup>
        ))}
      {folded.length > 0 && <MenuLine />}
      {folded.map(([title, terms]) => (
        <MenuFold key={title} label={title} count={terms.filter((term) => hasTerm(value, term)).length}>
          {terms.map(check)}
        </MenuFold>
      ))}
    </>
  );
}
