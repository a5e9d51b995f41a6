/** The words of the policy pages, apart from the others so that only these pages load them. */
export { editor as words } from "./en/editor";
