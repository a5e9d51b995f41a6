import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allow, axe, closeWindow, newWindow, Stage, signIn, withBrowser } from "./rig";
import { settled } from "./screens";

withBrowser();
let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open({ nodes: 40 });
});
afterAll(() => stage.close());

const row = (page: Page) => page.locator("tr[data-row]").first();
const menu = async (page: Page, item?: string | RegExp) => {
  await row(page)
    .getByRole("button", { name: /^Actions for / })
    .click();
  if (item) await page.getByRole("menuitem", { name: item }).click();
};
const button = (page: Page, name: string | RegExp) =>
  page.locator("main").getByRole("button", { name }).first().click();
const select = async (page: Page, count: number) => {
  for (let i = 0; i < count; i++) await page.locator("tr[data-row]").nth(i).getByRole("checkbox").click();
};

/** Deletes with two rows selected, because the first key may be the session's own, which bulk deletion leaves out. */
const deleteOthers = async (page: Page) => [await select(page, 2), await button(page, /^Delete/)];

/** Everything that opens on top of a page: on which path, and how. */
const layers: Record<string, [path: string, open: (page: Page) => Promise<unknown>]> = {
  palette: ["/", (page) => page.keyboard.press("Control+k")],
  "list of keys": ["/", (page) => page.keyboard.press("?")],
  "menu of the key": ["/", (page) => page.getByRole("button", { name: /Signed in with/ }).click()],
  "menu of a node": ["/nodes", (page) => menu(page)],
  "filters of nodes": ["/nodes", (page) => button(page, /^Filter$/)],
  "filters of nodes by owner": [
    "/nodes",
    async (page) => [await button(page, /^Filter$/), await page.getByRole("menuitem", { name: "Owner" }).click()],
  ],
  "filters of routes": ["/routes", (page) => button(page, /^Filter$/)],
  "filters of pre-auth keys": ["/keys", (page) => button(page, /^Filter$/)],
  "filters of API keys": ["/settings/api-keys", (page) => button(page, /^Filter$/)],
  "disable many routes": [
    "/routes?q=-is:waiting",
    async (page) => [await select(page, 2), await button(page, /^Disable/)],
  ],
  "delete API keys": ["/settings/api-keys?tab=all&q=-is:expired", (page) => deleteOthers(page)],
  "rename a node": ["/nodes", (page) => menu(page, "Rename")],
  "tags of a node": ["/nodes", (page) => menu(page, "Edit tags")],
  "owner of a node": ["/nodes?q=os:macos,windows,ios", (page) => menu(page, "Change owner")],
  "addresses of a node": ["/nodes/7", (page) => button(page, "Change addresses")],
  "expire a node": ["/nodes?q=is:online", (page) => menu(page, /^Expire key/)],
  "delete a node": ["/nodes?q=is:router", (page) => menu(page, "Delete")],
  "tags of many nodes": ["/nodes", async (page) => [await select(page, 3), await button(page, /^Edit tags$/)]],
  "delete many nodes": ["/nodes", async (page) => [await select(page, 6), await button(page, /^Delete/)]],
  "create a user": ["/users", (page) => button(page, /^Create user/)],
  "delete a user with nodes": ["/users", (page) => menu(page, "Delete")],
  "create a pre-auth key": ["/keys", (page) => button(page, "Create key")],
  "expire a pre-auth key": ["/keys", (page) => menu(page, "Expire")],
  "create an API key": ["/settings/api-keys", (page) => button(page, "Create API key")],
  "rotate an API key": ["/settings/api-keys", (page) => menu(page, "Rotate")],
  "create a webhook": ["/settings/webhooks", (page) => button(page, "Create webhook")],
  "revoke an API key": ["/settings/api-keys", (page) => menu(page, "Revoke")],
};

describe.each([
  { theme: "light", width: 1440, height: 900 },
  { theme: "dark", width: 1440, height: 900 },
] as const)("in the $theme theme everyone can use", (look) => {
  let page: Page;
  beforeAll(async () => {
    page = await newWindow(stage, look);
    allow(page, /status of 404/);
    await signIn(page, stage);
  });
  afterAll(() => closeWindow(page));

  test.each(Object.entries(layers))("%s, and is back where they were", async (_, [path, open]) => {
    await page.goto(`${stage.url}/admin${path}`);
    await settled(page);
    await open(page);
    const layer = page.locator("[role=dialog], [role=menu], [role=alertdialog]").first();
    await layer.waitFor();
    expect(await axe(page)).toEqual([]);
    const box = await layer.boundingBox();
    expect((box?.y ?? -1) >= 0 && (box?.y ?? 0) + (box?.height ?? 0) <= look.height, "it is all on the screen").toBe(
      true,
    );
    await page.keyboard.press("Escape");
    await layer.waitFor({ state: "detached" });
    // A layer returns the focus a moment after it is gone.
    await page.waitForFunction(() => document.activeElement !== document.body || location.pathname === "/admin/");
  });
});
