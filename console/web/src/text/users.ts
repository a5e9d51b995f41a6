/** The words of a part of the console, which only its pages load. */
export { userWords } from "./en/userWords";
