import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";

export type Search = Record<string, string>;

/** Search parameters are plain words: what a person reads in the address is what it says. */
export function readSearch(text: string): Search {
  return Object.fromEntries(new URLSearchParams(text));
}

export function writeSearch(search: Record<string, unknown>): string {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    if (value !== undefined && value !== null && value !== "") words.set(name, String(value));
  }
  const text = words.toString().replaceAll("%3A", ":").replaceAll("%2C", ",").replaceAll("%2F", "/");
  return text && `?${text}`;
}

/**
 * The state of a page, in its address. What is at its default is not there. By default a change replaces the entry in
 * the history, as for typing; with `push` the back button undoes it, as for opening a panel.
 */
export function useSearchState<S extends Search>(
  defaults: S,
): [S, (change: Partial<S>, how?: "replace" | "push") => void] {
  const search = useSearch({ strict: false }) as Search;
  const navigate = useNavigate();
  const names = Object.keys(defaults).join(" ");
  // biome-ignore lint/correctness/useExhaustiveDependencies: the defaults of a page do not change
  const state = useMemo(() => {
    const own: Search = {};
    for (const name of Object.keys(defaults)) own[name] = search[name] ?? defaults[name] ?? "";
    return own as S;
  }, [search, names]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the defaults of a page do not change
  const change = useCallback(
    (changed: Partial<S>, how: "replace" | "push" = "replace") => {
      const next = (before: Search) => {
        const all: Record<string, string | undefined> = { ...before, ...changed };
        for (const [name, usual] of Object.entries(defaults))
          if (all[name] === usual || all[name] === "") delete all[name];
        return all;
      };
      void navigate({ to: ".", search: next as never, replace: how === "replace" });
    },
    [navigate, names],
  );
  return [state, change];
}
