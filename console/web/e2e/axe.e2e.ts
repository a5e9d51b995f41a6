import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allow, axe, closeWindow, newWindow, Stage, signedIn, signIn, withBrowser } from "./rig";
import { screens, settled } from "./screens";

withBrowser();
let stage: Stage;
let empty: Stage;
beforeAll(async () => {
  [stage, empty] = await Promise.all([Stage.open({ nodes: 200 }), Stage.open()]);
});
afterAll(async () => {
  await stage.close();
  await empty.close();
});

const notFound = /status of 404/;

const looks = (["light", "dark"] as const).flatMap((theme) => [
  { theme, width: 1440, height: 900 },
  { theme, width: 390, height: 844 },
]);

describe.each(looks)("in the $theme theme at $width px everyone can use", (look) => {
  let page: Page;
  beforeAll(async () => {
    page = await newWindow(stage, look);
    allow(page, notFound);
  });
  afterAll(() => closeWindow(page));

  test("the login", async () => {
    await page.goto(`${stage.url}/admin/`);
    await page.getByLabel("API key").waitFor();
    expect(await axe(page)).toEqual([]);
    await signIn(page, stage);
  });

  test.each(Object.entries(screens))("%s", async (_, path) => {
    await page.goto(`${stage.url}/admin${path}`);
    await settled(page);
    expect(await axe(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
  });
});

describe("before there is anything, everyone can use", () => {
  let page: Page;
  beforeAll(async () => {
    page = await signedIn(empty);
    allow(page, notFound);
  });
  afterAll(() => closeWindow(page));

  test.each(Object.entries(screens))("%s", async (_, path) => {
    await page.goto(`${empty.url}/admin${path}`);
    await settled(page);
    expect(await axe(page)).toEqual([]);
  });
});
