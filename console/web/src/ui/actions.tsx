import { type ComponentType, createContext, type ReactNode, Suspense, useCallback, useContext, useState } from "react";

/**
 * Creates actions on objects of one kind: a person starts one, and dialogs, which may be lazy-loaded, ask for further
 * input. Returns a provider that renders the dialogs for the page inside, and a hook: `const start = useStart();
 * start({ name: "rename", … })`.
 */
export function actionsOf<A>(Dialogs: ComponentType<{ action: A; onClose(): void }>) {
  const Context = createContext<(action: A) => void>(() => {});
  function Provider({ children }: { children: ReactNode }) {
    const [action, setAction] = useState<A | null>(null);
    const start = useCallback((next: A) => setAction(() => next), []);
    // Do not close an action that was started in the meantime: the call for this one may end late.
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
