import { type ComponentType, createContext, type ReactNode, Suspense, useCallback, useContext, useState } from "react";

/**
 * Creates actions on objects of one kind: a person starts one, and dialogs, which may be lazy-loaded, ask for the
 * rest. Returns a provider that renders the dialogs for the page inside, and a hook: `const start = useStart();
 * start({ name: "rename", … })`.
 */
export function actionsOf<A>(Dialogs: ComponentType<{ action: A; onClose(): void }>) {
  const Context = createContext<(action: A) => void>(() => {});
  function Provider({ children }: { children: ReactNode }) {
    const [action, setAction] = useState<A | null>(null);
    const start = useCallback((next: A) => setAction(() => next), []);
    // Keep an action that was started since: a call from an earlier dialog may end late.
    const close = useCallback(() => setAction((now) => (now === action ? null : now)), [action]);
    return (
      <Context value={start}>
        {children}
        {action !== null && (
          // While the dialog loads, keys no longer trigger shortcuts of the page.
          <Suspense fallback={<span data-layer hidden />}>
            <Dialogs action={action} onClose={close} />
          </Suspense>
        )}
      </Context>
    );
  }
  return { Provider, useStart: () => useContext(Context) };
}
