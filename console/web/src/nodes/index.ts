/** What the console knows about nodes, wherever they are shown: facts, filter terms, marks and actions. */
export { NodeActionsProvider, useNodeActions } from "./actions";
export { useApproveNodes } from "./approval";
export * from "./facts";
export { asksHosts, type Hosts, nodeFilter, nodeFilterFields, staleAge } from "./filter";
export { NodeMark, OsIcon, Owner, Presence, RouteBadges } from "./marks";
export { NodeMenu } from "./NodeMenu";
