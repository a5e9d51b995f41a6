/** Characters that turn the direction of text, or that cannot be seen: names come from devices and may hold them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const tricks = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A name from outside, with the invisible made visible and the endless made short. */
export function printable(name: string, most = 253): string {
  const shown = name.replace(tricks, "\ufffd");
  return shown.length > most ? `${shown.slice(0, most)}…` : shown;
}

/** What a table has for a name from outside, of which "constructor" is one like any other. */
export const entry = <T>(table: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;

/** Two letters for a person. */
export function initials(name: string): string {
  const [first = "", second] = printable(name).split(/[\s._@-]+/);
  return (second ? first.slice(0, 1) + second.slice(0, 1) : first.slice(0, 2)).toUpperCase();
}
