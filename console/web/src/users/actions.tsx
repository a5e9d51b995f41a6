import { lazy } from "react";
import { actionsOf } from "@/ui/actions";
import type { UserAction } from "./dialogs";

const actions = actionsOf<UserAction>(lazy(() => import("./dialogs")));
/** `const start = useUserActions(); start({ name: "rename", user })` */
export const useUserActions = actions.useStart;
/** Provides the dialogs for users to the page inside. */
export const UserActionsProvider = actions.Provider;
