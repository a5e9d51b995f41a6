/**
 * The language of the filter lines: words that must all hold. `tag:db` asks for a field, `-user:ana` for its opposite,
 * `version:<1.90` compares, `os:linux,macos` takes either, and quotes keep spaces. A word with a field that nobody
 * knows is plain text, so that IPv6 addresses can be typed. Pages say what their fields mean (Fields).
 */
export { comparesVersion, longerAgo, prefixContains } from "./compare";
export { type Fields, matches } from "./match";
export { addTerm, hasTerm, parse, removeTerm, type Term, termsOf } from "./parse";
export { useFilter } from "./useFilter";
