import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { documentationOf, type GuideName, guides, guideTo } from "./documentation";

const docs = new URL("../../../../docs/", import.meta.url);
const pages = [
  "/",
  "/my",
  "/nodes",
  "/nodes/7",
  "/nodes/new",
  "/users/1",
  "/routes",
  "/keys",
  "/requests",
  "/policy",
  "/policy/versions/3",
  "/access",
  "/timeline",
  "/settings/api-keys",
  "/settings/sessions",
  "/settings/dns",
  "/settings/webhooks",
  "/settings/server",
  "/settings/cluster",
  "/settings/appearance",
];

const addresses = [
  ...pages.map((page) => [page, documentationOf(`/admin${page}`)]),
  ...Object.keys(guides).map((name) => [name, guideTo(name as GuideName)]),
];

test.each(addresses)("the documentation of %s exists", (_, address = "") => {
  const [, name = "", section] = /\/docs\/([\w.-]+\.md)(?:#(.+))?$/.exec(address) ?? [];
  const headings = Array.from(readFileSync(new URL(name, docs), "utf8").matchAll(/^#+ (.+)$/gm), ([, title = ""]) =>
    title
      .toLowerCase()
      .replace(/[^\w -]/g, "")
      .replaceAll(" ", "-"),
  );
  if (section) expect(headings).toContain(section);
  else expect(headings).not.toEqual([]);
});

test("a page has its own document, and others the one about the console", () => {
  expect(documentationOf("/admin/policy/versions")).toMatch(/\/policy\.md$/);
  expect(documentationOf("/admin/policyholders")).toMatch(/\/console\.md$/);
});
