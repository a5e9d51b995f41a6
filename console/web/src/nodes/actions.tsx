import { createContext, lazy, type ReactNode, Suspense, useCallback, useContext, useState } from "react";
import type { Node } from "@/api";

/** Something that a person begins to do with nodes; a dialogue asks for the rest. */
export type NodeAction =
  | { name: "rename"; node: Node }
  | { name: "tags" | "neverExpire" | "setExpiry"; node: Node }
  | { name: "addTags" | "approve" | "expire" | "delete"; nodes: readonly Node[] };

const Dialogs = lazy(() => import("./dialogs"));
const Context = createContext<(action: NodeAction) => void>(() => {});

/** `const start = useNodeActions(); start({ name: "rename", node })` */
export const useNodeActions = () => useContext(Context);

/** Holds the dialogues of nodes for the page inside. */
export function NodeActionsProvider({ children }: { children: ReactNode }) {
  const [action, setAction] = useState<NodeAction | null>(null);
  const close = useCallback(() => setAction(null), []);
  return (
    <Context value={setAction}>
      {children}
      {action && (
        <Suspense>
          <Dialogs action={action} onClose={close} />
        </Suspense>
      )}
    </Context>
  );
}
