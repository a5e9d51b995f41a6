const names = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/** Compares names as people expect: case-insensitively, and numbers by value. */
export const compareText = (a: string, b: string) => names.compare(a, b);
