/**
 * Every word that the console shows, in one catalogue: `text.nodes.title`. A text with a number is a function that
 * picks its plural form. Another language is another object of type Catalogue, chosen here.
 */
import { en } from "./en";

export type Catalogue = typeof en;
export const text: Catalogue = en;
export { initials, printable } from "./hostile";
