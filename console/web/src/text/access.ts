/** Texts of the access page and of other components that show access, loaded only where they are used. */
export { accessMap } from "./en/accessMap";
export { accessView } from "./en/accessView";
