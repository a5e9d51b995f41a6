/** Texts that only the overview page loads. */
export { overviewWords } from "./en/overviewWords";
