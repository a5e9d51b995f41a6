import type { Term } from "./parse";

/** What the filter fields mean for one kind of object; text is for words without a field. */
export interface Fields<T> {
  text(item: T, word: string): boolean;
  fields: Record<string, (item: T, value: string, op: Term["op"]) => boolean>;
}

/** Whether all terms match. */
export function matches<T>(item: T, terms: readonly Term[], by: Fields<T>): boolean {
  return terms.every((term) => {
    const test = term.field === null ? undefined : by.fields[term.field];
    const holds = term.values.some((value) => (test ? test(item, value, term.op) : by.text(item, value)));
    return holds !== term.negated;
  });
}
