import { ref } from "vue";

const key = "fairlead-tabs";

/** The captions of the tabs that the reader chose, the latest first. All groups of tabs share them. */
export const choices = ref<string[]>([]);

export function restore(): void {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(key) ?? "[]");
    if (Array.isArray(stored)) choices.value = stored.filter((s) => typeof s === "string");
  } catch {
    // No storage, or not ours: the first tab is shown.
  }
}

export function choose(caption: string): void {
  choices.value = [caption, ...choices.value.filter((c) => c !== caption)].slice(0, 10);
  try {
    localStorage.setItem(key, JSON.stringify(choices.value));
  } catch {
    // Without storage, the choice lasts until the page is reloaded.
  }
}
