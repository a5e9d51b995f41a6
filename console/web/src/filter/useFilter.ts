import { useDeferredValue, useMemo } from "react";
import { useTyped } from "@/router/search";
import { parse } from "./parse";

/** A filter line: the typed text immediately, and its terms deferred. `fields` must be stable. */
export function useFilter(value: string, commit: (value: string) => void, fields: readonly string[]) {
  const [typed, setTyped] = useTyped(value, commit);
  const query = useDeferredValue(typed);
  const terms = useMemo(() => parse(query, fields), [query, fields]);
  return { typed, setTyped, query, terms };
}
