/** Texts about the owner of a node and what identifies it. They are loaded with the pages that show nodes and users. */
export { addresses, identifiers, owner } from "./en/ownership";
