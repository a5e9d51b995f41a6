import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";

export type Search = Record<string, string>;

/** Parses search parameters as plain strings, so that the URL stays readable. */
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
 * The state of a page, kept in its URL. Default values are omitted. By default a change replaces the history entry, as
 * for typing; with `push` the back button undoes it, as for opening a panel.
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
 * Starts an action that the URL requests, such as `/keys?create=1`, once. The parameter is removed from the URL first,
 * so that neither Back nor a reload starts it again.
 */
export function useBegun(name: string, begin: () => void) {
  const [search, setSearch] = useSearchState<Search>({ [name]: "" });
  const asked = search[name] !== "";
  // biome-ignore lint/correctness/useExhaustiveDependencies: it runs when the address starts to ask
  useEffect(() => {
    if (!asked) return;
    setSearch({ [name]: "" });
    begin();
  }, [asked]);
}

/** A word from the URL if it is one of these, otherwise the default. A URL can contain anything. */
export function oneOf<W extends string>(word: string, among: Readonly<Record<W, unknown>>, usual: W): W {
  return Object.hasOwn(among, word) ? (word as W) : usual;
}

/** The typed text, immediately; the URL follows when typing pauses. A change of the URL takes precedence. */
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
