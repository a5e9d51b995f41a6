/** Pre-auth keys: what they are, how they are made, and how long things that end live. */
export { CreateKeyDialog, Failure } from "./CreateKeyDialog";
export * from "./facts";
export { type JoinSystem, joinCommand } from "./join";
export { LifeField } from "./LifeField";
export { endOf, type Life, momentWords } from "./life";
export { TagField, usePolicyTags } from "./TagField";
