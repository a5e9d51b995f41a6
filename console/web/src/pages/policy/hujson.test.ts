import { StringStream } from "@codemirror/language";
import { describe, expect, it } from "vitest";
import { startState, token } from "./hujson";

/** The tokens of a text as "type:text", without plain text. */
function tokens(text: string): string[] {
  const state = startState();
  const found: string[] = [];
  for (const line of text.split("\n")) {
    const stream = new StringStream(line, 2, 2);
    while (!stream.eol()) {
      stream.start = stream.pos;
      const sort = token(stream, state);
      expect(stream.pos).toBeGreaterThan(stream.start);
      if (sort) found.push(`${sort}:${stream.current()}`);
    }
  }
  return found;
}

describe("the tokenizer of HuJSON", () => {
  it("tells names of members from strings", () => {
    expect(tokens('{"a" : ["b", "c:1"]}')).toEqual([
      "bracket:{",
      'propertyName:"a"',
      "bracket:[",
      'string:"b"',
      'string:"c:1"',
      "bracket:]",
      "bracket:}",
    ]);
  });

  it("reads comments of both sorts, over several lines too", () => {
    expect(tokens('1 // "no": string\n/* one\n"two" */ "three" /* four */ 5')).toEqual([
      "number:1",
      'comment:// "no": string',
      "comment:/* one",
      'comment:"two" */',
      'string:"three"',
      "comment:/* four */",
      "number:5",
    ]);
  });

  it("does not take slashes or escaped quotes in strings for their end", () => {
    expect(tokens(String.raw`"http://x \" // y", true`)).toEqual([String.raw`string:"http://x \" // y"`, "bool:true"]);
  });

  it("ends a string that nobody closed with its line", () => {
    expect(tokens('"open\n-1.5e3 null')).toEqual(['string:"open', "number:-1.5e3", "bool:null"]);
    expect(tokens('"open\\\n1')).toEqual(['string:"open\\', "number:1"]);
  });

  it("goes on behind what it does not know", () => {
    expect(tokens("trueish ~ '")).toEqual([]);
  });
});
