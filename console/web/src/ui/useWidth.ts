import { type RefObject, useLayoutEffect, useState } from "react";

/** The width of an element, updated as it changes; 0 until it is known. The element may be mounted and unmounted. */
export function useWidth(element: RefObject<HTMLElement | null>): number {
  const [watched, setWatched] = useState<HTMLElement | null>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => setWatched(element.current));
  useLayoutEffect(() => {
    if (!watched) return;
    setWidth(watched.clientWidth);
    if (typeof ResizeObserver === "undefined") return;
    const observer = new ResizeObserver(() => setWidth(watched.clientWidth));
    observer.observe(watched);
    return () => observer.disconnect();
  }, [watched]);
  return width;
}
