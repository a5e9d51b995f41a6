/**
 * Keys typed after a layer with a text field was requested, and before that field has the focus. They are meant for
 * the field, so they must not trigger shortcuts of the page or edit a field underneath the layer.
 */
let held: { text: string; cancel(): void } | null = null;

function take(event: KeyboardEvent) {
  if (!held || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (event.key === "Escape") held.cancel();
  else if (event.key === "Backspace") held.text = held.text.slice(0, -1);
  else if (event.key.length === 1) held.text += event.key;
}

/** Starts to hold keys. Escape calls cancel. */
export function holdKeys(cancel: () => void) {
  if (!held) addEventListener("keydown", take, true);
  held = { text: held?.text ?? "", cancel };
}

/** Stops holding keys, and returns the text that was typed in the meantime. */
export function releaseKeys(): string {
  const text = held?.text ?? "";
  held = null;
  removeEventListener("keydown", take, true);
  return text;
}
