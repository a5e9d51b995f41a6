/** What the tokenizer needs from the current line. CodeMirror's StringStream implements it. */
export interface Stream {
  match(pattern: RegExp): unknown;
  eatSpace(): boolean;
  skipTo(text: string): unknown;
  skipToEnd(): void;
  next(): unknown;
}

export interface TokenizerState {
  inComment: boolean;
}

export const startState = (): TokenizerState => ({ inComment: false });

/** The type of the next token of JSON with comments and trailing commas. Null is plain text. */
export function token(stream: Stream, state: TokenizerState): string | null {
  if (state.inComment) return blockComment(stream, state);
  if (stream.eatSpace()) return null;
  if (stream.match(/^\/\/.*/)) return "comment";
  if (stream.match(/^\/\*/)) {
    state.inComment = true;
    return blockComment(stream, state);
  }
  if (stream.match(/^"(?:[^"\\]|\\.)*"(?=\s*:)/)) return "propertyName";
  // An unclosed string ends with its line.
  if (stream.match(/^"(?:[^"\\]|\\.)*(?:"|\\?$)/)) return "string";
  if (stream.match(/^-?\d[\d.eE+-]*/)) return "number";
  if (stream.match(/^(?:true|false|null)\b/)) return "bool";
  if (stream.match(/^[[\]{}]/)) return "bracket";
  stream.next();
  return null;
}

function blockComment(stream: Stream, state: TokenizerState): string {
  if (stream.skipTo("*/")) {
    stream.match(/^\*\//);
    state.inComment = false;
  } else {
    stream.skipToEnd();
  }
  return "comment";
}
