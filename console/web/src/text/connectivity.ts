/** Texts of the connectivity tab of a node, which are loaded with the tab. */
export { connectivity } from "./en/connectivity";
