import { type ParseError, parse, printParseErrorCode } from "jsonc-parser";
import type { PolicyProblem } from "@/api";
import { words } from "@/text/policy";

/** Something wrong with the text, at a place. Lines and columns count from 1; line 0 is the text as a whole. */
export type Found = PolicyProblem;

/** What keeps the text from being JSON with comments. It is known at once, without asking the server. */
export function syntaxProblems(text: string): Found[] {
  const errors: ParseError[] = [];
  parse(text, errors, { allowTrailingComma: true });
  const found: Found[] = [];
  for (const { error, offset } of errors) {
    const place = placeAt(text, offset);
    // One slip makes the parser stumble on; the first of a line says what it is.
    if (found.at(-1)?.line === place.line) continue;
    found.push({ ...place, text: words.syntax[printParseErrorCode(error)] ?? words.syntaxOther });
  }
  return found;
}

export function placeAt(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset).split("\n");
  return { line: before.length, column: [...(before.at(-1) ?? "")].length + 1 };
}

/** The part of a line that a problem is about: the string or the word that begins there. Columns count characters. */
export function rangeInLine(line: string, column: number): { from: number; to: number } {
  if (column <= 0) return { from: line.length - line.trimStart().length, to: line.trimEnd().length };
  const from = Math.min([...line].slice(0, column - 1).join("").length, line.length);
  const token = /^(?:"(?:[^"\\]|\\.)*"?|[\w.:@*/-]+|.)/.exec(line.slice(from))?.[0] ?? "";
  if (token) return { from, to: from + token.length };
  // At the end of the line there is nothing to mark but what is before it.
  return { from: Math.max(0, from - 1), to: from };
}
