import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";

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

/**
 * Begins what an address asks for, once, such as `/keys?create=1`. It is taken from the address first, so that neither
 * Back nor a reload begins it again.
 */
export function useBegun(name: string, begin: () => void) {
  const [search, setSearch] = useSearchState<Search>({ [name]: "" });
  const asked = search[name] !== "";
  // biome-ignore lint/correctness/useExhaustiveDependencies: it begins when the address begins to ask
  useEffect(() => {
    if (!asked) return;
    setSearch({ [name]: "" });
    begin();
  }, [asked]);
}

/** The word of an address when it is one of these, and the usual one otherwise. Anybody can write anything there. */
export function oneOf<W extends string>(word: string, among: Readonly<Record<W, unknown>>, usual: W): W {
  return Object.hasOwn(among, word) ? (word as W) : usual;
}

/** What is being typed, at once; the address follows when typing pauses. A change of the address wins. */
export function useTyped(value: string, commit: (value: string) => void): [string, (typed: string) => void] {
  const [typed, setTyped] = useState(value);
  const sent = useRef(value);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => {
    if (value === sent.current) return;
    clearTimeout(timer.current);
    sent.current = value;
    setTyped(value);
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = useCallback(
    (next: string) => {
      setTyped(next);
      clearTimeout(timer.current);
      timer.current = setTimeout(() => {
        sent.current = next;
        commit(next);
      }, 250);
    },
    [commit],
  );
  return [typed, type];
}
