const reasons = new Set<string>();

const ask = (event: BeforeUnloadEvent) => event.preventDefault();

/** Whether the browser asks before it leaves the page, as there is something that would be lost. */
export function asksBeforeLeaving(reason: string, asks: boolean) {
  if (asks) reasons.add(reason);
  else reasons.delete(reason);
  removeEventListener("beforeunload", ask);
  if (reasons.size > 0) addEventListener("beforeunload", ask);
}

/**
 * Shows the login form. It asks nothing: the session is over, and a draft that the tab keeps is there after signing in
 * again. A secret is not: nothing of a session outlives it on the screen.
 */
export function signedOut() {
  removeEventListener("beforeunload", ask);
  location.reload();
}
