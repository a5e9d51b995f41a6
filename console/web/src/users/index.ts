/** What the console knows about users, wherever they are shown: facts, where the policy names them, what can be done. */
export { CreateUserDialog } from "./CreateUserDialog";
export * from "./facts";
export { type Mention, type Mentions, readMentions } from "./mentions";
export { UserLink } from "./UserLink";
export { usePolicyMentions } from "./usePolicyMentions";
