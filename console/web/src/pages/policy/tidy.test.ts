import { parse } from "jsonc-parser";
import { expect, it } from "vitest";
import { tidied } from "./tidy";

it("moves lines in as far as they are deep and leaves their content alone", () => {
  const text = `// head
{
"groups": {
        "group:ops":   ["ana@"], // the { few
  },

\t\t
  "acls": [   
  { "action": "accept",
  "src": ["a[b"],
  },
      /* kept
    as it
  is ] */
  ],
      }

`;
  expect(tidied(text)).toBe(`// head
{
  "groups": {
    "group:ops":   ["ana@"], // the { few
  },

  "acls": [
    { "action": "accept",
      "src": ["a[b"],
    },
    /* kept
    as it
  is ] */
  ],
}
`);
});

it("is the same when done again", () => {
  const once = tidied('{\n"a": [\n[\n1,\n], [2\n]\n]\n}');
  expect(tidied(once)).toBe(once);
});

it("breaks a text that is all on one line, one line for each rule", () => {
  const text = '{"groups":{},"acls":[{"action":"accept","src":["*"],"dst":["*:*"]},{"src":[]}],/* on */"x":true}';
  expect(tidied(text)).toBe(`{
  "groups": {},
  "acls": [
    { "action": "accept", "src": ["*"], "dst": ["*:*"] },
    { "src": [] }
  ],
  /* on */ "x": true
}
`);
});

it.each(['{"a":"b // c","d":[1,-2,true,null]}', '{\n"a":[{\n"b": "}"\n}]}', '{"a": "x\\"y"}'])(
  "does not change what %s means",
  (text) => expect(parse(tidied(text))).toEqual(parse(text)),
);
