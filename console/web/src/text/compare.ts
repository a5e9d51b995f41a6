const names = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/** The order of names as people expect it: whatever the case, and numbers by their value. */
export const compareText = (a: string, b: string) => names.compare(a, b);
