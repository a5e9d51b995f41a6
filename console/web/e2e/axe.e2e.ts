import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  allow,
  axe,
  axeInBothThemes,
  axeInDarkTheme,
  closeWindow,
  fewLooks,
  navigate,
  newWindow,
  Stage,
  signIn,
  withBrowser,
} from "./rig";
import { screens, settled } from "./screens";

withBrowser();
const stages = [
  { title: "with 60 nodes", nodes: 60 },
  { title: "before there is anything", nodes: 0 },
];
const wide = 1440;
const phone = 390;

describe.each(stages)("$title, everyone can use", ({ nodes }) => {
  let stage: Stage;
  let page: Page;
  beforeAll(async () => {
    stage = await Stage.open({ nodes });
    page = await newWindow(stage);
    allow(page, /status of 404/);
  });
  afterAll(async () => {
    await closeWindow(page);
    await stage.close();
  });

  const inspect = (width: number) => {
    // The empty pages of a phone have the structure and the colours of the wide ones.
    if (fewLooks && width === wide) return axe(page, "html", "all");
    if (fewLooks) return axeInDarkTheme(page, "html", nodes === 0 ? "colours" : "all");
    return width === phone && nodes === 0 ? axe(page, "html", "structure") : axeInBothThemes(page);
  };
  const check = async (ready: () => Promise<unknown>) => {
    for (const width of [wide, phone]) {
      await page.setViewportSize({ width, height: 900 });
      await ready();
      expect(await inspect(width), `${width} px`).toEqual([]);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(over, `${width} px: horizontal overflow`).toBeLessThanOrEqual(0);
    }
  };

  test("the login", async () => {
    await page.goto(`${stage.url}/admin/`);
    await check(() => page.getByLabel("API key").waitFor());
    await signIn(page, stage);
  });

  test.each(Object.entries(screens))("%s", async (_, path) => {
    await page.setViewportSize({ width: wide, height: 900 });
    await navigate(page, `/admin${path}`);
    await check(() => settled(page));
  });
});
