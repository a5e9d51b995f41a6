/** Which address shows which page. Pages take what they need of the address from ./search: this module imports them all. */
export { router } from "./tree";
