import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { axe, closeWindow, eventually, go, Stage, signedIn, withBrowser } from "./rig";

withBrowser();
let stage: Stage;
let page: Page;
/** The newest version before the tests. */
let first = 0;

const rule = (src: string, port: number) => `{"action": "accept", "src": ["${src}"], "dst": ["tag:db:${port}"]}`;
const policy = (...rules: string[]) =>
  [
    "{",
    '  "tagOwners": {"tag:db": [], "tag:api": [], "tag:ci": [], "tag:mon": []},',
    '  "acls": [',
    ...rules.map((r) => `    ${r},`),
    "  ],",
    "}",
    "",
  ].join("\n");

/** Saves a policy, as another administrator would. */
async function save(text: string, reason: string) {
  const answer = await fetch(`${stage.server}/api/v1/policy`, {
    method: "PUT",
    headers: { authorization: `Bearer ${stage.admin}`, "content-type": "application/json" },
    body: JSON.stringify({ policy: text, reason }),
  });
  if (!answer.ok) throw new Error(await answer.text());
  return Number(((await answer.json()) as { version: string }).version);
}

beforeAll(async () => {
  stage = await Stage.open({ nodes: 40 });
  first = await save(policy(rule("tag:api", 5432)), "the application");
  await save(policy(rule("tag:api", 5432), rule("tag:ci", 5432)), "builds too");
  await save(policy(rule("tag:api", 5432), rule("tag:ci", 5432), rule("tag:mon", 9100)), "figures");
  page = await signedIn(stage, "/admin/policy/versions");
});
afterAll(async () => {
  await closeWindow(page);
  await stage.close();
});

const added = () => page.locator(".cm-changedLine");
const effect = () => page.getByRole("complementary", { name: "Effect of this version" });

describe("a version", () => {
  test("is compared with the previous one, or with any other", async () => {
    await go(page, stage, `/admin/policy/versions/${first + 2}`);
    await page.getByText("tag:mon").first().waitFor();
    await eventually(async () => expect(await added().allTextContents()).toEqual([expect.stringContaining("tag:mon")]));
    await effect().getByRole("heading", { name: "Effect of this version" }).waitFor();
    await page.getByLabel("Compare with").selectOption(String(first));
    await page.waitForURL(/[?&]with=/);
    await effect()
      .getByRole("heading", { name: `Compared with version ${first}` })
      .waitFor();
    await effect().getByText("tag:ci").first().waitFor();
    await eventually(async () => expect((await added().allTextContents()).join(" ")).toContain("tag:ci"));
    expect(await axe(page)).toEqual([]);
    await page.reload();
    await effect()
      .getByRole("heading", { name: `Compared with version ${first}` })
      .waitFor();
  });

  test("compared with the active one shows what restoring it would change", async () => {
    await go(page, stage, `/admin/policy/versions/${first}?with=${first + 2}`);
    await effect()
      .getByText(/loses port/)
      .first()
      .waitFor();
    await eventually(async () =>
      expect(await page.locator(".cm-deletedChunk").first().textContent()).toContain("tag:ci"),
    );
  });

  test("is shown as the one that added a rule", async () => {
    await go(page, stage, "/admin/access?view=flow");
    await page
      .getByRole("button", { name: /^tag:ci to / })
      .first()
      .focus();
    await page.keyboard.press("Enter");
    const panel = page.getByRole("complementary", { name: /^Rule on line/ });
    await panel.getByRole("link", { name: `version ${first + 1}`, exact: true }).waitFor();
    await panel.getByText("builds too").waitFor();
    expect(await axe(page)).toEqual([]);
    // The matrix does not draw rules: the panel of a cell links to them.
    await go(page, stage, "/admin/access?cell=tag:ci>tag:db");
    await page
      .getByRole("complementary", { name: "tag:ci → tag:db" })
      .getByRole("button", { name: "tag:ci → tag:db 5432" })
      .click();
    await panel.getByRole("link", { name: `version ${first + 1}`, exact: true }).waitFor();
  });

  test("is undone while later changes are kept", async () => {
    await go(page, stage, `/admin/policy/versions/${first + 1}`);
    await page.getByRole("button", { name: "Undo this change" }).click();
    await page.waitForURL(/\/admin\/policy$/);
    await page
      .getByText(`Draft without the changes of version ${first + 1}`)
      .first()
      .waitFor();
    await eventually(async () =>
      expect(await page.locator(".cm-deletedChunk").first().textContent()).toContain("tag:ci"),
    );
    expect(await axe(page)).toEqual([]);
    await page.getByRole("button", { name: "Discard" }).click();
  });

  test("is opened and restored on a phone", async () => {
    const phone = await signedIn(stage, "/admin/policy/versions", { width: 390, height: 844 });
    await phone.getByRole("link", { name: new RegExp(`version ${first}\\b`, "i") }).click();
    await phone.getByLabel("Compare with").waitFor();
    expect(await axe(phone)).toEqual([]);
    await phone.getByRole("button", { name: "Restore" }).click();
    await phone.waitForURL(/\/admin\/policy$/);
    await phone
      .getByText(/unsaved/)
      .first()
      .waitFor();
    await closeWindow(phone);
  });
});
