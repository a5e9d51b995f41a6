import { type ParseError, parse, printParseErrorCode } from "jsonc-parser";
import type { PolicyProblem } from "@/api";
import { words } from "@/text/policy";

/** A problem at a position in the text. Lines and columns count from 1; line 0 is the whole text. */
export type Found = PolicyProblem;

/** Why the text is not valid JSON with comments. Known immediately, without asking the server. */
export function syntaxProblems(text: string): Found[] {
  const errors: ParseError[] = [];
  parse(text, errors, { allowTrailingComma: true });
  const found: Found[] = [];
  const placeAt = placesIn(text);
  for (const { error, offset } of errors) {
    const place = placeAt(offset);
    // One mistake causes further errors on its line, so only the first of a line is reported.
    if (found.at(-1)?.line === place.line) continue;
    found.push({ ...place, text: words.syntax[printParseErrorCode(error)] ?? words.syntaxOther });
  }
  return found;
}

/** Returns a function from offsets to lines and columns that is fast for thousands of offsets in a megabyte of text. */
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

/** The range in a line that a problem refers to: the string or word that starts there. Columns count characters. */
export function rangeInLine(line: string, column: number): { from: number; to: number } {
  if (column <= 0) return { from: line.length - line.trimStart().length, to: line.trimEnd().length };
  const from = Math.min([...line].slice(0, column - 1).join("").length, line.length);
  const token = /^(?:"(?:[^"\\]|\\.)*"?|[\w.:@*/-]+|.)/.exec(line.slice(from))?.[0] ?? "";
  if (token) return { from, to: from + token.length };
  // At the end of the line, only the character before it can be marked.
  return { from: Math.max(0, from - 1), to: from };
}
