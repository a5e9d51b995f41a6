/** Texts of the policy pages, separate so that only these pages load them. */
export { editor as words } from "./en/editor";
