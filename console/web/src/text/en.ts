/**
 * One file for each page, so that pages can be written in parallel. Each file is imported where it is used, so the
 * texts of a page are loaded with the page.
 */
export { access } from "./en/access";
export { activity } from "./en/activity";
export { common } from "./en/common";
export { device } from "./en/device";
export { keys } from "./en/keys";
export { node } from "./en/node";
export { nodes } from "./en/nodes";
export { overview } from "./en/overview";
export { policy } from "./en/policy";
export { requests } from "./en/requests";
export { routes } from "./en/routes";
export { settings } from "./en/settings";
export { shell } from "./en/shell";
export { table } from "./en/table";
export { timeline } from "./en/timeline";
export { users } from "./en/users";
