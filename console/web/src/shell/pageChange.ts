import { useRouterState } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { announce } from "@/ui";
import { focusOn, landmark } from "@/ui/focus";

/** How often to look for the title of a page that is still loading, in milliseconds. */
const interval = 100;
/** How many times to look for it. */
const most = 20;

/**
 * Does what a browser does for a new document: announces the title of the page, and moves the focus to the page if the
 * link that had it is gone.
 */
export function usePageChange() {
  const path = useRouterState({ select: (state) => state.resolvedLocation?.pathname });
  const before = useRef(path);
  useEffect(() => {
    const navigated = before.current !== undefined && before.current !== path;
    before.current = path;
    if (!navigated) return;
    let looked = 0;
    const timer = setInterval(() => {
      const title = landmark()?.querySelector("h1")?.innerText.replace(/\s+/g, " ");
      if (!title && ++looked < most) return;
      clearInterval(timer);
      announce(title || document.title, "page");
      if (document.activeElement === document.body) focusOn(null);
    }, interval);
    return () => clearInterval(timer);
  }, [path]);
}
