/** Approving and disabling routes, on any page: facts about routes, and the confirmation dialogs. */
export { RouteActionsProvider, useTurnRoutes } from "./actions";
export * from "./facts";
