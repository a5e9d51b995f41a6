import { lazy } from "react";
import { actionsOf } from "@/ui/actions";
import type { NodeAction } from "./dialogs";

const actions = actionsOf<NodeAction>(lazy(() => import("./dialogs")));
/** `const start = useNodeActions(); start({ name: "rename", node })` */
export const useNodeActions = actions.useStart;
/** Provides the dialogs for nodes to the page inside. */
export const NodeActionsProvider = actions.Provider;
