const reasons = new Set<string>();

const ask = (event: BeforeUnloadEvent) => event.preventDefault();

/** Whether the browser asks before it leaves the page, as there is something that would be lost. */
export function asksBeforeLeaving(reason: string, asks: boolean) {
  if (asks) reasons.add(reason);
  else reasons.delete(reason);
  removeEventListener("beforeunload", ask);
  if (reasons.size > 0) addEventListener("beforeunload", ask);
}

/** Shows the login form. It asks nothing: the session is over, and what the tab keeps is there after signing in again. */
export function signedOut() {
  removeEventListener("beforeunload", ask);
  location.reload();
}
