import { useEffect } from "react";
import type { Term } from "@/filter";
import { text } from "@/text";
import { announce } from "../announce";
import { usePageTitle } from "../page";

/**
 * Puts the number of rows into the page title, and announces it while a filter changes it. Undefined means not known
 * yet.
 */
export function useShown(title: string, rows: number | undefined, terms: readonly Term[]) {
  usePageTitle(title, rows !== undefined && text.table.shown(rows));
  useEffect(() => {
    if (terms.length > 0 && rows !== undefined) announce(text.table.shown(rows));
  }, [terms, rows]);
}
