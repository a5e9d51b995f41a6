/** What pages with a single list share: their state in the URL (useListPage) and their layout (ListPage). */
export { ListPage, ListPanel, ListToolbar } from "./ListPage";
export { SettingsList } from "./SettingsList";
export { useCreate } from "./useCreate";
export { type Selection, tabsOf, useChosen, useListPage } from "./useListPage";
