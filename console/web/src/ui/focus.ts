/** The control that last had the focus outside of layers: where it goes back to when a layer closes. */
let last: HTMLElement | null = null;

if (typeof document !== "undefined") {
  document.addEventListener("focusin", ({ target }) => {
    if (target instanceof HTMLElement && !target.closest('[role="dialog"], [role="menu"]')) last = target;
  });
}

/** For onCloseAutoFocus of a layer that has no trigger of its own. */
export function returnFocus(event: Event) {
  event.preventDefault();
  const to = last?.isConnected ? last : document.getElementById("main");
  to?.focus({ preventScroll: true });
}
