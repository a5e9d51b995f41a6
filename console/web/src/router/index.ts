/** The mapping of URLs to pages. Pages import from ./search instead, because this module imports all of them. */
export { router } from "./tree";
