import { type RefObject, useLayoutEffect, useRef, useSyncExternalStore } from "react";

/** The height of each bar at the bottom of the page, in pixels. */
const feet = new Map<Element, number>();
const listeners = new Set<() => void>();
let height = 0;

function changed() {
  height = Math.max(0, ...feet.values());
  for (const tell of listeners) tell();
}

/** Registers a bar at the bottom of the page, which messages must not cover. Returns the ref for it. */
export function useFoot<T extends HTMLElement>(): RefObject<T | null> {
  const bar = useRef<T>(null);
  useLayoutEffect(() => {
    const element = bar.current;
    if (!element) return;
    const measure = () => {
      feet.set(element, Math.round(innerHeight - element.getBoundingClientRect().top));
      changed();
    };
    const sizes = new ResizeObserver(measure);
    sizes.observe(element);
    return () => {
      sizes.disconnect();
      feet.delete(element);
      changed();
    };
  }, []);
  return bar;
}

/** The height of the bars at the bottom of the page. */
export const useFootHeight = () =>
  useSyncExternalStore(
    (tell) => {
      listeners.add(tell);
      return () => listeners.delete(tell);
    },
    () => height,
  );
