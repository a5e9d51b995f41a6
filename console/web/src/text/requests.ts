/** Texts that only the requests page loads. */
export { requestWords } from "./en/requestWords";
