/** Routes wherever they are approved or disabled: what they are, and what is asked before a switch is turned. */
export { RouteActionsProvider, useTurnRoutes } from "./actions";
export * from "./facts";
