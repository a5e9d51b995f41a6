/** Routes wherever they are approved or disabled: facts about them, and the questions before a switch is toggled. */
export { RouteActionsProvider, useTurnRoutes } from "./actions";
export * from "./facts";
