/** Texts of a part of the console that only its pages load. */
export { overviewWords } from "./en/overviewWords";
