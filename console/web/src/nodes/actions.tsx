import { lazy } from "react";
import type { Node } from "@/api";
import { actionsOf } from "@/ui/actions";

/** Something that a person begins to do with nodes; a dialogue asks for the rest. */
export type NodeAction =
  | { name: "rename"; node: Node }
  | { name: "tags" | "neverExpire" | "setExpiry"; node: Node }
  | { name: "addTags" | "expire" | "delete"; nodes: readonly Node[] };

const actions = actionsOf<NodeAction>(lazy(() => import("./dialogs")));
/** `const start = useNodeActions(); start({ name: "rename", node })` */
export const useNodeActions = actions.useStart;
/** Holds the dialogues of nodes for the page inside. */
export const NodeActionsProvider = actions.Provider;
