/**
 * One file for each page, so that pages can be written at the same time. Each goes where it is used: the words of a page
 * come with the page.
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
