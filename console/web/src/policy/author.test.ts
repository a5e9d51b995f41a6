import { expect, it } from "vitest";
import { authorWords } from "./author";

it("names a key by the beginning of its name, and others as the server does", () => {
  const key = (name: string) => `API key ${name}`;
  expect(authorWords("key:DzFezkB750sn", key)).toBe("API key DzFez");
  expect(authorWords("local", key)).toBe("local");
  expect(authorWords("a\u202eb", key)).toBe("a\ufffdb");
});
