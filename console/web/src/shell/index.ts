/** What stands around every page: the rail, the top bar, the palette, the keys, and what is said when a page fails. */
export { type Action, useActions } from "./actions";
export { Shell } from "./Shell";
