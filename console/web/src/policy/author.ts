import { printable } from "@/text";

/** Who saved a version, in words: a key by the start of its name, otherwise what the server reports. */
export function authorWords(author: string, keyWords: (name: string) => string): string {
  const key = /^key:(.+)$/.exec(author)?.[1];
  return key ? keyWords(printable(key.slice(0, 5))) : printable(author, 60);
}
