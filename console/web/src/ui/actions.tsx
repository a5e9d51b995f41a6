import { type ComponentType, createContext, type ReactNode, Suspense, useCallback, useContext, useState } from "react";

/**
 * What a person begins to do with things of one kind; dialogues, which may be loaded late, ask for the rest. It gives a
 * provider that holds them for the page inside, and a hook: `const start = useStart(); start({ name: "rename", … })`.
 */
export function actionsOf<A>(Dialogs: ComponentType<{ action: A; onClose(): void }>) {
  const Context = createContext<(action: A) => void>(() => {});
  function Provider({ children }: { children: ReactNode }) {
    const [action, setAction] = useState<A | null>(null);
    const start = useCallback((next: A) => setAction(() => next), []);
    // What was begun since stays: a call of an earlier dialogue may end late.
    const close = useCallback(() => setAction((now) => (now === action ? null : now)), [action]);
    return (
      <Context value={start}>
        {children}
        {action !== null && (
          <Suspense>
            <Dialogs action={action} onClose={close} />
          </Suspense>
        )}
      </Context>
    );
  }
  return { Provider, useStart: () => useContext(Context) };
}
