/**
 * Every text that the console shows, in one catalogue: `text.nodes.title`. A text with a number is a function that
 * picks its plural form. Another language is another module with the same exports, selected here. Texts are referenced
 * statically, never looked up by a computed name, so that a page loads only its own texts.
 */

export { compareText } from "./compare";
export * as text from "./en";
export { entry, initials, printable } from "./hostile";
