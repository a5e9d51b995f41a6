import { lazy } from "react";
import type { User } from "@/api";
import { actionsOf } from "@/ui/actions";

/** Something that a person begins to do with users; a dialogue asks for the rest. */
export type UserAction =
  | { name: "create" }
  | { name: "rename" | "key"; user: User }
  | { name: "delete"; users: readonly User[]; onDone?(): void };

const actions = actionsOf<UserAction>(lazy(() => import("./dialogs")));
/** `const start = useUserActions(); start({ name: "rename", user })` */
export const useUserActions = actions.useStart;
/** Holds the dialogues of users for the page inside. */
export const UserActionsProvider = actions.Provider;
