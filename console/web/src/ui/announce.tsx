import { useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
let said = { polite: "", assertive: "" };

/** Announces something to screen readers: counts politely, failures at once. */
export function announce(words: string, how: "polite" | "assertive" = "polite") {
  said = { ...said, [how]: words };
  for (const tell of listeners) tell();
}

function subscribe(tell: () => void) {
  listeners.add(tell);
  return () => listeners.delete(tell);
}

/** The two live regions of the page for announcements. */
export function LiveRegions() {
  const { polite, assertive } = useSyncExternalStore(subscribe, () => said);
  return (
    <>
      <div className="sr-only" aria-live="polite">
        {polite}
      </div>
      <div className="sr-only" aria-live="assertive">
        {assertive}
      </div>
    </>
  );
}
