import { createScanner } from "jsonc-parser";
import { unitOf } from "@/policy/edits";

const open = "{[";
const close = "}]";

/**
 * The formatted text: lines indented by their depth, no trailing spaces, at most one empty line in a row. Line breaks
 * and comments stay as they are. Text that is all on one line is broken up first.
 */
export function tidied(text: string): string {
  const unit = unitOf(text);
  const broken = text.trim().includes("\n") ? text : brokenUp(text, unit);
  const lines: string[] = [];
  let depth = 0;
  let inComment = false;
  for (const line of broken.split(/\r?\n/)) {
    const words = line.trim();
    if (inComment) {
      // The layout inside a comment is left as it is.
      lines.push(line.trimEnd());
    } else {
      const closing = /^[}\]]+/.exec(words.replace(/[\s,]/g, ""))?.[0].length ?? 0;
      if (words || lines.at(-1)) lines.push(words && unit.repeat(Math.max(0, depth - closing)) + words);
    }
    const after = readLine(line, inComment);
    depth = Math.max(0, depth + after.deeper);
    inComment = after.inComment;
  }
  while (lines.at(-1) === "") lines.pop();
  return `${lines.join("\n")}\n`;
}

/** The change of depth after a line, and whether a comment continues after it. */
function readLine(line: string, inComment: boolean): { deeper: number; inComment: boolean } {
  let rest = line;
  if (inComment) {
    const end = line.indexOf("*/");
    if (end < 0) return { deeper: 0, inComment: true };
    rest = line.slice(end + 2);
  }
  let deeper = 0;
  for (const [token] of rest.matchAll(/"(?:[^"\\]|\\.)*"?|\/\/.*|\/\*.*?(?:\*\/|$)|[{}[\]]/g)) {
    if (token.startsWith("/*")) {
      if (token.length < 4 || !token.endsWith("*/")) return { deeper, inComment: true };
    } else if (open.includes(token)) deeper++;
    else if (close.includes(token)) deeper--;
  }
  return { deeper, inComment: false };
}

/** One line for each field and each rule; the content of a rule stays on one line. */
function brokenUp(text: string, unit: string): string {
  const scanner = createScanner(text, false);
  let out = "";
  let depth = 0;
  let empty = false;
  const newLine = () => `\n${unit.repeat(depth)}`;
  while (scanner.getPosition() < text.length) {
    scanner.scan();
    const token = text.substr(scanner.getTokenOffset(), scanner.getTokenLength());
    if (token.trim() === "") continue;
    if (open.includes(token)) {
      out += token;
      depth++;
      empty = /^[\s]*[}\]]/.test(text.slice(scanner.getPosition()));
      if (depth <= 2 && !empty) out += newLine();
      else if (token === "{" && !empty) out += " ";
    } else if (close.includes(token)) {
      depth--;
      if (depth < 2 && !empty) out += newLine();
      else if (token === "}" && !empty) out += " ";
      out += token;
      empty = false;
    } else if (token === ",") out += depth <= 2 ? `,${newLine()}` : ", ";
    else if (token === ":") out += ": ";
    else out += token.startsWith("/*") ? `${token} ` : token;
  }
  return out;
}
