/** Texts of a part of the console that only its pages load. */
export { accessMap } from "./en/accessMap";
export { accessView } from "./en/accessView";
