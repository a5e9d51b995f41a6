/**
 * Every word that the console shows, in one catalogue: `text.nodes.title`. A text with a number is a function that
 * picks its plural form. Another language is another module with the same exports, chosen here. Parts are named where
 * they are used and never looked up by a name, so that a page brings its own words and no others.
 */

export { compareText } from "./compare";
export * as text from "./en";
export { entry, initials, printable } from "./hostile";
