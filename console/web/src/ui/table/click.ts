import type { MouseEvent } from "react";

/** Whether the last press on a row closed a menu. */
let closed = false;
const isMenuOpen = () => document.querySelector('[role="menu"]') !== null;

/** Records a press on a row, before a menu that it closes is gone. */
export function notePress() {
  closed = isMenuOpen();
}

/**
 * Whether a click is meant for the row: not for a control in it, not in a layer that a menu of the row opened, not to
 * close a menu, and not at the end of selecting text.
 */
export function isForRow(event: MouseEvent): boolean {
  const { target, currentTarget } = event;
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return false;
  if (!(target instanceof Element) || !currentTarget.contains(target)) return false;
  if (target.closest("a, button, input, select, textarea, label, summary, [data-apart]")) return false;
  // On touch screens, a menu closes only on click.
  if (closed || isMenuOpen()) return false;
  return getSelection()?.isCollapsed !== false;
}

/** Whether a pointer, not a key or a screen reader, activated a link in the row. */
export function isTapOnLink({ target, currentTarget, detail }: MouseEvent): boolean {
  return detail > 0 && target instanceof Element && currentTarget.contains(target) && target.closest("a") !== null;
}
