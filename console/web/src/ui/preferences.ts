import { useSyncExternalStore } from "react";

/** The settings for this browser. No data from the server is stored here. */
export interface Preferences {
  theme: "system" | "light" | "dark";
  density: "comfortable" | "compact";
  singleKeys: boolean;
  timeZone: "local" | "utc";
  /** Whether the overview lists the next steps. */
  nextSteps: boolean;
  /** Whether the person has ticked that backups are set up. */
  backups: boolean;
}

const usual: Preferences = {
  theme: "system",
  density: "comfortable",
  singleKeys: true,
  timeZone: "local",
  nextSteps: true,
  backups: false,
};
const place = "fairlead.preferences";
const listeners = new Set<() => void>();
let current: Preferences = read();

function read(): Preferences {
  try {
    return { ...usual, ...JSON.parse(localStorage.getItem(place) ?? "{}") };
  } catch {
    return usual;
  }
}

const dark = typeof matchMedia === "function" ? matchMedia("(prefers-color-scheme: dark)") : null;

/** Applies the theme to the page. */
export function applyTheme() {
  const theme = current.theme === "system" ? (dark?.matches ? "dark" : "light") : current.theme;
  document.documentElement.dataset.theme = theme;
}
dark?.addEventListener("change", applyTheme);

export function setPreference<K extends keyof Preferences>(name: K, value: Preferences[K]) {
  current = { ...current, [name]: value };
  try {
    localStorage.setItem(place, JSON.stringify(current));
  } catch {
    // Without storage, the setting lasts as long as the tab.
  }
  applyTheme();
  for (const tell of listeners) tell();
}

const themes: Preferences["theme"][] = ["system", "light", "dark"];

/** Cycles through the system's theme, light and dark. */
export function nextTheme() {
  setPreference("theme", themes[(themes.indexOf(current.theme) + 1) % themes.length] ?? "system");
}

export const readPreferences = () => current;

export function usePreferences(): Preferences {
  return useSyncExternalStore(
    (tell) => {
      listeners.add(tell);
      return () => listeners.delete(tell);
    },
    () => current,
  );
}
