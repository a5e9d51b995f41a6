import { clsx } from "clsx";
import type { ReactNode } from "react";
import { text } from "@/text";
import { type Column, ErrorState, FilterLine, PageHead, type Tab, Tabs, ViewMenu } from "@/ui";
import type { List } from "./useListPage";

export interface ToolbarProps<T, V extends string> {
  list: List<V>;
  /** The label of the tabs. */
  label: string;
  tabs: readonly Tab<V>[];
  onTab?(tab: V): void;
  columns: readonly Column<T>[];
  filter: { filterLabel: string; filterPlaceholder: string };
  /** The menu that inserts terms into the filter line. */
  filterMenu: ReactNode;
  /** The number of rows, which is shown next to a filter. */
  found: number;
}

/** The tabs of a list, its filter and its columns: side by side, or stacked on narrow screens. */
export function ListToolbar<T, V extends string>({
  list,
  label,
  tabs,
  onTab = (tab) => list.setSearch({ tab }),
  columns,
  filter,
  filterMenu,
  found,
  small,
  segmented,
  children,
}: ToolbarProps<T, V> & {
  /** Whether the tabs need less space than usual. */
  small?: boolean;
  /** Whether the list is below other tabs. */
  segmented?: boolean;
  children?: ReactNode;
}) {
  return (
    <div
      className={clsx(
        "flex min-w-0 items-center gap-x-4",
        small ? "@max-[720px]:flex-col @max-[720px]:items-stretch" : "@max-[880px]:flex-col @max-[880px]:items-stretch",
      )}
    >
      <div className={clsx("min-w-0 flex-1", !small && "@max-[880px]:w-full @max-[880px]:overflow-hidden")}>
        <Tabs label={label} tabs={tabs} value={list.tab} onChange={onTab} panel={list.id} segmented={segmented} />
      </div>
      <div className={clsx("flex items-center gap-2", small ? "@max-[720px]:py-2" : "@max-[880px]:py-2")}>
        {list.terms.length > 0 && (
          <span className="shrink-0 text-12 whitespace-nowrap text-ink-2 tabular-nums max-md:hidden">
            {text.table.found(found)}
          </span>
        )}
        <FilterLine
          label={filter.filterLabel}
          placeholder={filter.filterPlaceholder}
          value={list.typed}
          onChange={list.setTyped}
        />
        {filterMenu}
        <ViewMenu columns={columns} chosen={list.search.cols} onChoose={(cols) => list.setSearch({ cols })} />
        {children}
      </div>
    </div>
  );
}

/** The content of the tab. */
export function ListPanel<V extends string>({ list, children }: { list: List<V>; children: ReactNode }) {
  return (
    <div
      id={list.id}
      role="tabpanel"
      aria-labelledby={`${list.id}-${list.tab}`}
      className="flex min-h-0 flex-1 flex-col"
    >
      {children}
    </div>
  );
}

/** A page that is a single list: a head with tabs and filter, the table, and bulk actions for selected rows. */
export function ListPage<T, V extends string>({
  title,
  actions,
  above,
  query,
  bulk,
  aside,
  children,
  ...toolbar
}: Omit<ToolbarProps<T, V>, "label"> & {
  title: string;
  /** Actions on the list as a whole. */
  actions: ReactNode;
  /** Shown above the table, such as help about the filter. */
  above?: ReactNode;
  /** The query for the rows: its error replaces the table if there are none. */
  query?: { data: unknown; error: unknown; refetch(): unknown };
  bulk: ReactNode;
  /** The details of the open row. */
  aside?: ReactNode;
  /** The table. */
  children: ReactNode;
}) {
  return (
    <div className="flex h-full min-w-0">
      <div className="relative flex min-w-0 flex-1 flex-col">
        <PageHead
          title={title}
          below={
            <div className="mt-2">
              <ListToolbar label={title} {...toolbar} />
            </div>
          }
        >
          {actions}
        </PageHead>
        {above}
        <ListPanel list={toolbar.list}>
          {query?.error && !query.data ? (
            <ErrorState title={title} error={query.error} onRetry={() => void query.refetch()} />
          ) : (
            children
          )}
        </ListPanel>
        {bulk}
      </div>
      {aside}
    </div>
  );
}
