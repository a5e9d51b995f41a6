/** The frame around every page: navigation, top bar, palette, shortcuts, and the message when a page fails. */
export { type Action, useActions } from "./actions";
export { MemberShell } from "./MemberShell";
export { Shell } from "./Shell";
