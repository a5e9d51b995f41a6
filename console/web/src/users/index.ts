/** What the console knows about users, wherever they are shown: facts, where the policy names them, and actions. */
export { UserActionsProvider, useUserActions } from "./actions";
export { CreateUserDialog } from "./CreateUserDialog";
export * from "./facts";
export { userFilter, userFilterFields } from "./filter";
export { MentionList } from "./MentionList";
export { UserBadges } from "./marks";
export { type Mention, type Mentions, readMentions } from "./mentions";
export { usePasskeys } from "./passkeys";
export { UserLink } from "./UserLink";
export { UserMenu } from "./UserMenu";
export { usePolicyMentions } from "./usePolicyMentions";
export { useAccessWrites, useAdminWrites } from "./writes";
