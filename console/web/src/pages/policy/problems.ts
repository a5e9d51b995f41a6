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
  const placeAt = placesIn(text);
  for (const { error, offset } of errors) {
    const place = placeAt(offset);
    // One slip makes the parser stumble on; the first of a line says what it is.
    if (found.at(-1)?.line === place.line) continue;
    found.push({ ...place, text: words.syntax[printParseErrorCode(error)] ?? words.syntaxOther });
  }
  return found;
}

/** Tells the line and the column of offsets in a text, of thousands in a text of a megabyte too. */
export function placesIn(text: string): (offset: number) => { line: number; column: number } {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return (offset) => {
    let [low, high] = [0, starts.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle;
    }
    return { line: low + 1, column: [...text.slice(starts[low], offset)].length + 1 };
  };
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
