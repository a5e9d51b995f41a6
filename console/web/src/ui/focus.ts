import { useEffect, useRef } from "react";

/** The control outside of layers that last had the focus: the focus returns to it when a layer closes. */
let last: HTMLElement | null = null;

if (typeof document !== "undefined") {
  document.addEventListener("focusin", ({ target }) => {
    if (target instanceof HTMLElement && !target.closest('[role="dialog"], [role="menu"], [data-messages]'))
      last = target;
  });
}

/** Records the control from which a pointer opened a layer, so that the focus returns to it when the layer closes. */
export function openedFrom(control: HTMLElement | null) {
  last = control;
}

/** Moves the focus to an element, or to the content of the page if the element is gone or cannot have the focus. */
export function focusOn(element: Element | null) {
  const usable = (element instanceof HTMLElement || element instanceof SVGElement) && element !== document.body;
  const to = usable && element.isConnected ? element : landmark();
  to?.focus({ preventScroll: true });
}

/** Moves the focus back to where it was before a layer or a message. */
export const focusBack = () => focusOn(last);

/** For onCloseAutoFocus of a layer without a trigger of its own. */
export function returnFocus(event: Event) {
  event.preventDefault();
  focusBack();
}

/** Moves the focus to the first invalid field of a form that was submitted. */
export function focusOnMistake(form: HTMLElement | null) {
  requestAnimationFrame(() => form?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
}

/** The content of the page. Menus and tooltips are rendered into it, because all content belongs to a landmark. */
export const landmark = () => document.getElementById("main");

/** Moves the focus into a component when it appears, and returns it when the component goes away. */
export function useBorrowedFocus(find: () => HTMLElement | null | undefined) {
  const target = useRef(find);
  useEffect(() => {
    const before = document.activeElement;
    target.current()?.focus({ preventScroll: true });
    return () => focusOn(before);
  }, []);
}
