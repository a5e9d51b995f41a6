import { parse } from "jsonc-parser";
import { describe, expect, it } from "vitest";
import { readDocument } from "./document";
import { templateNames, templateText } from "./templates";
import { tidied } from "./tidy";

describe.each(templateNames)("the template %s", (name) => {
  it.each([
    ["nobody", [], []],
    ["one user", ["ana@"], []],
    ["users", ["ana@"], ["bo@example.com", "cy@"]],
  ])("is a formatted policy for %s", (_, admins, others) => {
    const text = templateText(name, { admins, others });
    const errors: never[] = [];
    parse(text, errors, { allowTrailingComma: true });
    expect(errors).toEqual([]);
    expect(tidied(text)).toBe(text);
    const document = readDocument(text);
    const tags = new Set(text.match(/tag:[a-z]+/g)?.filter((tag) => text.includes(`"${tag}`)));
    expect([...tags].filter((tag) => !document.tags.includes(tag))).toEqual([]);
    const groups = new Set(text.match(/group:[a-z]+/g)?.filter((group) => !text.includes(`auto${group}`)));
    expect([...groups].filter((group) => !document.groups.has(group))).toEqual([]);
  });
});
