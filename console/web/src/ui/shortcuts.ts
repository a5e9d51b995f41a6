import { useEffect, useRef, useSyncExternalStore } from "react";
import { usePreferences } from "./preferences";

export interface Shortcut {
  /** "j", "X" for Shift and x, "g n" for a sequence, "Mod+K" for Ctrl or ⌘. */
  keys: string;
  label: string;
  group: string;
  run?(): void;
}

const listeners = new Set<() => void>();
let registered: readonly { list: { current: readonly Shortcut[] } }[] = [];
let version = 0;
let begun = "";
let forget: ReturnType<typeof setTimeout> | undefined;

function changed() {
  version++;
  for (const tell of listeners) tell();
}

/** The name of a key press in the notation of shortcuts. */
export function keyName(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">): string {
  if (event.altKey) return "";
  const key = event.key === "Backspace" ? "Delete" : event.key;
  return event.ctrlKey || event.metaKey ? `Mod+${key.toUpperCase()}` : key;
}

/** The meaning of a key after the keys before it: a shortcut, or the start of one. */
export function resolve(list: readonly Shortcut[], before: string, key: string): { found?: Shortcut; begun: string } {
  const sequence = before ? `${before} ${key}` : key;
  const found = list.findLast((s) => s.keys === sequence);
  if (found) return { found, begun: "" };
  if (list.some((s) => s.keys.startsWith(`${sequence} `))) return { begun: sequence };
  return before ? resolve(list, "", key) : { begun: "" };
}

/** Whether a dialog is open over the page, which then gets the keys, or is loading. */
const covered = () => document.querySelector('[role="dialog"], [role="alertdialog"], [data-layer]') !== null;

/** Whether plain keys belong to the focused element, or to a layer over the page. */
export function busy(target: EventTarget | null): boolean {
  if (!(target instanceof Element)) return false;
  if (target.closest("input:not([type=checkbox]), textarea, select, [contenteditable=true]")) return true;
  return covered() || document.querySelector('[role="menu"]') !== null;
}

function onKey(event: KeyboardEvent, singleKeys: boolean) {
  const key = keyName(event);
  const plain = !key.startsWith("Mod+");
  if (!key || event.defaultPrevented || event.isComposing) return;
  if (plain && (!singleKeys || busy(event.target))) return;
  const all = registered.flatMap((r) => r.list.current).filter((s) => s.run);
  const result = resolve(all, begun, key);
  begun = result.begun;
  clearTimeout(forget);
  forget = setTimeout(() => {
    begun = "";
  }, 1200);
  if (!result.found) return;
  event.preventDefault();
  // A shortcut of the page below must not discard what a dialog holds, such as a secret that nobody has stored.
  if (!covered()) result.found.run?.();
}

/** Installs the only key listener of the page. */
export function useKeyboard() {
  const { singleKeys } = usePreferences();
  useEffect(() => {
    const listen = (event: KeyboardEvent) => onKey(event, singleKeys);
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, [singleKeys]);
}

/** Shortcuts that are active while a component is mounted. If two have the same keys, the later one wins. */
export function useShortcuts(list: readonly Shortcut[]) {
  const current = useRef(list);
  current.current = list;
  useEffect(() => {
    const entry = { list: current };
    registered = [...registered, entry];
    changed();
    return () => {
      registered = registered.filter((r) => r !== entry);
      changed();
    };
  }, []);
}

/** All active shortcuts, for the list of them. */
export function useAllShortcuts(): Shortcut[] {
  useSyncExternalStore(
    (tell) => {
      listeners.add(tell);
      return () => listeners.delete(tell);
    },
    () => version,
  );
  return [...new Map(registered.flatMap((r) => r.list.current).map((s) => [s.keys, s])).values()];
}
