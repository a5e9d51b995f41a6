import { useCallback, useMemo, useState } from "react";
import { type Term, useFilter } from "@/filter";
import { oneOf, type Search, useSearchState } from "@/router/search";
import type { Tab } from "@/ui";

/** The search parameters of every list. Pages add their own, such as the open row. */
interface ListSearch {
  tab: string;
  /** The filter line. */
  q: string;
  sort: string;
  /** The columns, if not the default ones. */
  cols: string;
}

/** The selected rows, by ID. */
export interface Selection {
  selected: ReadonlySet<string>;
  clearSelection(): void;
}

/** The state that all list pages have in common. */
export interface List<V extends string> extends Selection {
  /** The ID of the tab panel, unique in the page. */
  id: string;
  search: ListSearch;
  setSearch(change: Partial<ListSearch>): void;
  tab: V;
  typed: string;
  setTyped(typed: string): void;
  terms: readonly Term[];
}

const rowId = (row: { id: string }) => row.id;

/**
 * The tab, filter, order and columns of a list, which are in the URL, and the selected rows. `usual` holds the default
 * search parameters; `tabs` and `fields` must not change. `table` is for the DataTable.
 */
export function useListPage<S extends Search & ListSearch, V extends string>({
  id,
  usual,
  tabs,
  fields,
}: {
  id: string;
  usual: S;
  tabs: Readonly<Record<V, unknown>>;
  fields: readonly string[];
}) {
  const [search, setSearch] = useSearchState(usual);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const clearSelection = useCallback(() => setSelected(new Set()), []);
  const tab = oneOf(search.tab, tabs, usual.tab as V);

  const change = setSearch as (change: Partial<ListSearch>) => void;
  const commit = useCallback((q: string) => change({ q }), [change]);
  const { typed, setTyped, query, terms } = useFilter(search.q, commit, fields);
  const onSort = useCallback((sort: string) => change({ sort }), [change]);
  /** For a page whose tab "all" shows every row. */
  const showAll = useCallback(() => {
    setTyped("");
    change({ q: "", tab: "all" });
  }, [setTyped, change]);

  return {
    id,
    search,
    setSearch,
    tab,
    typed,
    setTyped,
    query,
    terms,
    filtered: tab !== usual.tab || terms.length > 0,
    showAll,
    selected,
    setSelected,
    clearSelection,
    table: { chosen: search.cols, sort: search.sort, onSort, asked: `${tab} ${query}`, rowId, selected },
  };
}

/** The tabs in the order of their labels, each with its count. */
export function tabsOf<V extends string>(
  labels: Readonly<Record<V, string>>,
  more: (value: V) => Pick<Tab<V>, "count" | "tone">,
): Tab<V>[] {
  return (Object.keys(labels) as V[]).map((value) => ({ value, label: labels[value], ...more(value) }));
}

/** The selected rows, visible or not, and the text of the BulkBar about them. */
export function useChosen<T extends { id: string }>(
  { selected, clearSelection }: Selection,
  all: readonly T[],
  rows: readonly T[],
) {
  const chosen = useMemo(() => all.filter((row) => selected.has(row.id)), [all, selected]);
  const hidden = chosen.length - rows.filter((row) => selected.has(row.id)).length;
  return { chosen, bar: { selected: chosen.length, hidden, onClear: clearSelection } };
}
