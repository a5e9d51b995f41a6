import { useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
let said = { polite: "", assertive: "", page: "" };

/** Announces something to screen readers: counts and page titles politely, failures assertively. */
export function announce(words: string, how: keyof typeof said = "polite") {
  // The same words again are announced only if the text of the region changes.
  said = { ...said, [how]: said[how] === words ? `${words}\u00a0` : words };
  for (const tell of listeners) tell();
}

function subscribe(tell: () => void) {
  listeners.add(tell);
  return () => listeners.delete(tell);
}

/** The live regions for announcements. Page titles have their own, so that they do not replace another announcement. */
export function LiveRegions() {
  const { polite, assertive, page } = useSyncExternalStore(subscribe, () => said);
  return (
    <>
      <div className="sr-only" aria-live="polite">
        {polite}
      </div>
      <div className="sr-only" aria-live="assertive">
        {assertive}
      </div>
      <div className="sr-only" aria-live="polite">
        {page}
      </div>
    </>
  );
}
