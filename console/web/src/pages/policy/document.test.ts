import { expect, it } from "vitest";
import { readDocument, rulesChanged, testResults } from "./document";

const text = `// head
{
  "groups": { "group:ops": ["ana@"], "group:none": [] },
  "hosts": { "office": "10.0.0.0/8" },
  "tagOwners": { "tag:db": ["group:ops"] },
  "acls": [
    // all
    { "action": "accept", "src": ["*"], "dst": ["*:*"] },
    { "action": "accept", "src": ["ana@"], "dst": ["tag:db:22"] },
  ],
  "tests": [
    { "src": "ana@", "accept": ["tag:db:22"] },
  ],
  "sshTests": [{ "src": "ana@", "dst": ["tag:db"], "deny": ["root"] }],
}
`;

it("reads the names that the text defines", () => {
  const document = readDocument(text);
  expect(document.groups.get("group:ops")).toEqual(["ana@"]);
  expect(document.hosts.get("office")).toBe("10.0.0.0/8");
  expect(document.tags).toEqual(["tag:db"]);
});

it.each(["", "{", "[]", '{"groups": 1, "acls": "x", "tests": [3, null], "hosts": []}', '{"groups": {"group:a": ["x'])(
  "reads what can be read of %j",
  (broken) => {
    expect(() => readDocument(broken)).not.toThrow();
  },
);

it("counts rules and not their comments or spaces", () => {
  const of = (change: (text: string) => string) => rulesChanged(readDocument(text), readDocument(change(text)));
  expect(of((t) => t.replace("// all", "// everyone").replaceAll(" ", "  "))).toBe(0);
  expect(of((t) => t.replace("tag:db:22", "tag:db:5432"))).toBe(1);
  expect(of((t) => t.replace(/ {4}{ "action".*\n/g, ""))).toBe(2);
  expect(of((t) => t.replace("    // all", '    { "src": [] },\n    { "src": [] },'))).toBe(2);
});

it("finds the tests by line, and fails each once", () => {
  const { tests } = readDocument(text);
  expect(tests.map((test) => test.line)).toEqual([12, 14]);
  const failure = { line: 12, src: "ana@", dst: "tag:db:22", want: "accept", text: "no" };
  expect(testResults(tests, [failure, failure]).map((test) => test.failures.length)).toEqual([2, 0]);
});
