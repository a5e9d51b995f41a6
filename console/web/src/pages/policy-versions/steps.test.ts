import { expect, it } from "vitest";
import { diffSize } from "./steps";

it("measures a diff without its head", () => {
  expect(diffSize("--- version 6\n+++ version 7\n@@ -1,2 +1,3 @@\n-a\n+b\n+--- c\n d\n")).toEqual({
    added: 2,
    removed: 1,
  });
  expect(diffSize("")).toEqual({ added: 0, removed: 0 });
});
