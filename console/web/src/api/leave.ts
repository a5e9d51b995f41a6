const reasons = new Set<string>();

const ask = (event: BeforeUnloadEvent) => event.preventDefault();

/** Sets whether the browser asks before it leaves the page, because something would be lost. */
export function asksBeforeLeaving(reason: string, asks: boolean) {
  if (asks) reasons.add(reason);
  else reasons.delete(reason);
  removeEventListener("beforeunload", ask);
  if (reasons.size > 0) addEventListener("beforeunload", ask);
}

/**
 * Shows the login form without asking: the session is over, and a draft that the tab stores is still there after the
 * next sign-in. A secret is not: nothing from a session stays on the screen after it ends.
 */
export function signedOut() {
  removeEventListener("beforeunload", ask);
  location.reload();
}
