/** Texts that only the user pages load. */
export { userWords } from "./en/userWords";
