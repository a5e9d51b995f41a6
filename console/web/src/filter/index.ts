/**
 * The query language of the filter fields: terms that must all match. `tag:db` matches a field, `-user:ana` negates,
 * `version:<1.90` compares, `os:linux,macos` matches either, and quotes keep spaces. A term with an unknown field is
 * plain text, so that IPv6 addresses can be typed. Pages define what their fields mean (Fields).
 */
export { comparesVersion, longerAgo, prefixContains } from "./compare";
export { type Fields, matches } from "./match";
export { addTerm, hasTerm, parse, removeTerm, type Term, termsOf } from "./parse";
export { useFilter } from "./useFilter";
