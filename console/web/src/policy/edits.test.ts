import { parse } from "jsonc-parser";
import { describe, expect, it } from "vitest";
import { addRule, addTest, firstPolicy } from "./edits";

const read = (text: string) => {
  const errors: never[] = [];
  const value = parse(text, errors, { allowTrailingComma: true });
  expect(errors).toEqual([]);
  return value;
};

const rule = { src: ["ana@"], dst: ["tag:db:5432"] };

describe("adding a rule", () => {
  it("writes one line after the last rule and touches nothing else", () => {
    const before = `// head
{
  "acls": [
    // first
    { "action": "accept", "src": ["*"], "dst": ["*:22"] }, // why
    // { "action": "accept" } is off
  ],
  "unknownToAll": {"x": 1},
}
`;
    const { text, line } = addRule(before, rule);
    expect(text.split("\n")[line - 1]).toBe('    { "action": "accept", "src": ["ana@"], "dst": ["tag:db:5432"] },');
    expect(
      text
        .split("\n")
        .toSpliced(line - 1, 1)
        .join("\n"),
    ).toBe(before);
    expect(read(text).acls).toHaveLength(2);
  });

  it.each([
    '{\n  "acls": [\n    { "src": ["*"] } // all\n  ],\n}\n',
    '{"acls": [{"src": ["*"]}]}',
    '{"acls": []}',
    '{\n  "groups": {},\n}\n',
    '{"grants": [{"src": ["*"], "dst": ["*"], "ip": ["*"]}]}',
  ])("writes a comment above it, and says the line of the rule: %s", (before) => {
    const { text, line } = addRule(before, { ...rule, comment: "Ana keeps the databases." });
    const lines = text.split("\n");
    expect(lines[line - 1]).toContain('"ana@"');
    expect(lines[line - 2]?.trim()).toBe("// Ana keeps the databases.");
    expect(lines[line - 2]?.search(/\S/)).toBe(lines[line - 1]?.search(/\S/));
    const { acls, grants } = read(text);
    expect((acls ?? grants).at(-1).src).toEqual(["ana@"]);
  });

  it("adds the comma that the last rule lacks, before its comment", () => {
    const { text } = addRule('{\n\t"acls": [\n\t\t{ "src": ["*"] } // all\n\t]\n}', rule);
    expect(text).toContain('{ "src": ["*"] }, // all\n\t\t{ "action"');
    expect(read(text).acls).toHaveLength(2);
  });

  it.each(['{"acls":[]}', '{"acls": [{"src": ["*"]}]}', '{"acls": [{"src": ["*"]},]}', '{"acls": [ /* none */ ]}'])(
    "keeps one line one line: %s",
    (before) => {
      const { text, line } = addRule(before, rule);
      expect(line).toBe(1);
      expect(read(text).acls.at(-1).src).toEqual(["ana@"]);
    },
  );

  it.each(["{}", "{\n}\n", '{ "groups": {} }', '{\n  "groups": {} // none\n}', firstPolicy])(
    "makes the list where there is none: %s",
    (before) => {
      const { text, line } = addRule(before, rule);
      expect(read(text).acls.at(-1)).toEqual({ action: "accept", ...rule });
      expect(text.split("\n")[line - 1]).toContain("tag:db:5432");
    },
  );

  it("goes on in grants where there are no acls", () => {
    const { text } = addRule('{"grants": []}', { src: ["ana@"], dst: ["tag:db:5432", "tag:web:80,443"], proto: "tcp" });
    expect(read(text).grants[0]).toEqual({
      src: ["ana@"],
      dst: ["tag:db", "tag:web"],
      ip: ["tcp:5432", "tcp:80", "tcp:443"],
    });
  });

  it("refuses a text that is no object, so that nothing is lost", () => {
    expect(() => addRule("[]", rule)).toThrow();
  });
});

it("adds a test without members that say nothing", () => {
  const { text } = addTest("{\n}\n", { src: "ana@", accept: ["tag:db:5432"], deny: [] });
  expect(read(text).tests).toEqual([{ src: "ana@", accept: ["tag:db:5432"] }]);
});

it("puts a test of SSH among its like", () => {
  const { text } = addTest("{\n}\n", { src: "ana@", dst: ["tag:db"], check: ["root"], deny: [] });
  expect(read(text)).toEqual({ sshTests: [{ src: "ana@", dst: ["tag:db"], check: ["root"] }] });
});
