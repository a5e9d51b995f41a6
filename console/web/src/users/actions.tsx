import { createContext, lazy, type ReactNode, Suspense, useCallback, useContext, useState } from "react";
import type { User } from "@/api";

/** Something that a person begins to do with users; a dialogue asks for the rest. */
export type UserAction =
  | { name: "create" }
  | { name: "rename" | "key"; user: User }
  | { name: "delete"; users: readonly User[]; onDone?(): void };

const Dialogs = lazy(() => import("./dialogs"));
const Context = createContext<(action: UserAction) => void>(() => {});

/** `const start = useUserActions(); start({ name: "rename", user })` */
export const useUserActions = () => useContext(Context);

/** Holds the dialogues of users for the page inside. */
export function UserActionsProvider({ children }: { children: ReactNode }) {
  const [action, setAction] = useState<UserAction | null>(null);
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
