import type { ReactNode } from "react";
import { columnsShown, ExportMenu, FilterMenu } from "@/ui";
import { ListPanel, ListToolbar, type ToolbarProps } from "./ListPage";

/** A list on a page of the settings: tabs and filter below those of the page, the table, and bulk actions. */
export function SettingsList<T, V extends string>({
  what,
  rows,
  filters,
  words,
  bulk,
  children,
  ...toolbar
}: Omit<ToolbarProps<T, V>, "filterMenu" | "found"> & {
  /** What the list contains, in the name of an exported file. */
  what: string;
  rows: readonly T[];
  /** Groups of filters, and their texts. */
  filters: [string, string[]][];
  words: Record<string, string>;
  bulk?: ReactNode;
  /** The table. */
  children: ReactNode;
}) {
  const { list, columns } = toolbar;
  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      <div className="@container shrink-0 border-b border-line bg-canvas px-6 max-md:px-4">
        <ListToolbar
          {...toolbar}
          small
          segmented
          found={rows.length}
          filterMenu={<FilterMenu groups={filters} words={words} value={list.typed} onChange={list.setTyped} />}
        >
          <ExportMenu what={what} columns={columnsShown(columns, list.search.cols)} rows={rows} />
        </ListToolbar>
      </div>
      <ListPanel list={list}>{children}</ListPanel>
      {bulk}
    </div>
  );
}
