/** The words of a part of the console, which only its pages load. */
export { accessMap } from "./en/accessMap";
