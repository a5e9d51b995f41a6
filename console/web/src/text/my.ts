/** Texts that only the page of own devices loads. */
export { myWords } from "./en/myWords";
