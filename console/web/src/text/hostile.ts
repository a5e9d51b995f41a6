/** Invisible characters and characters that change the text direction. Names come from devices and may contain them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const tricks = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Makes an untrusted name safe to show: invisible characters become visible, and long names are shortened. */
export function printable(name: string, most = 253): string {
  const shown = name.replace(tricks, "\ufffd");
  return shown.length > most ? `${shown.slice(0, most)}…` : shown;
}

/** Looks up an untrusted name in a table; names such as "constructor" are ordinary keys. */
export const entry = <T>(table: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;

/** Two-letter initials for a person. */
export function initials(name: string): string {
  const [first = "", second] = printable(name).split(/[\s._@-]+/);
  return (second ? first.slice(0, 1) + second.slice(0, 1) : first.slice(0, 2)).toUpperCase();
}
