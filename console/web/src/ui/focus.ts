/** The control outside of layers that last had the focus: the focus returns to it when a layer closes. */
let last: HTMLElement | null = null;

if (typeof document !== "undefined") {
  document.addEventListener("focusin", ({ target }) => {
    if (target instanceof HTMLElement && !target.closest('[role="dialog"], [role="menu"]')) last = target;
  });
}

/** For onCloseAutoFocus of a layer without a trigger of its own. */
export function returnFocus(event: Event) {
  event.preventDefault();
  const to = last?.isConnected ? last : document.getElementById("main");
  to?.focus({ preventScroll: true });
}
