/** Lists with many rows that can be sorted, selected, filtered and exported. Their state is in the URL. */
export { BulkBar } from "./BulkBar";
export { ColumnHead } from "./ColumnHead";
export { textColumn, timeColumn } from "./columnKinds";
export { type Column, columnsShown } from "./columns";
export { csvCell, downloadCSV, downloadJSON, toCSV } from "./csv";
export { DataTable } from "./DataTable";
export { FilterChip, FilterChipLine } from "./FilterChip";
export { FilterLine } from "./FilterLine";
export { ExportMenu, FilterButton, FilterGroups, FilterMenu, ViewMenu } from "./menus";
export { NoMatch } from "./NoMatch";
export { type Group, sortRows } from "./order";
export { useShown } from "./useShown";
