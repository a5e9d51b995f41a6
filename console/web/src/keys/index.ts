/** Pre-auth keys: what they are, the actions on them, and the lifetimes of things that expire. */
export { type KeyAction, KeyActionsProvider, KeyMenu, useKeyActions } from "./actions";
export { CreateKeyDialog, KeyReveal } from "./CreateKeyDialog";
export * from "./facts";
export { keyFilter, keyFilterFields } from "./filter";
export { type JoinSystem, joinCommand, onlyHere } from "./join";
export { LifeField } from "./LifeField";
export { endOf, type Life, momentWords, units } from "./life";
export { KeyKind, KeyOwner, KeyStateMark } from "./marks";
export { Failure, NewKeyDialog } from "./NewKeyDialog";
export { unruledTags, usePolicyTags } from "./policyTags";
export { TagField } from "./TagField";
