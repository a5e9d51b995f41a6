/** Which address shows which page (tree), and the address as the state of a page (search). */

export { readSearch, useSearchState, useTyped, writeSearch } from "./search";
export { router } from "./tree";
