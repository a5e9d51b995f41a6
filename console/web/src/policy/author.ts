import { printable } from "@/text";

/** Who saved a version, as text: the start of a key's name, or else what the server reports. */
export function authorWords(author: string, keyWords: (name: string) => string): string {
  const key = /^key:(.+)$/.exec(author)?.[1];
  return key ? keyWords(printable(key.slice(0, 5))) : printable(author, 60);
}
