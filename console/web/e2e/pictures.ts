import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, test } from "vitest";
import { allow, closeWindow, newWindow, Stage, signIn, withBrowser } from "./rig";
import { looks, screens, settled } from "./screens";

withBrowser();
const few = process.env.SCREENS === "few";
const crowds = few ? [200] : [0, 200, 3000];
const folder = resolve(import.meta.dirname, "../../../dist/screens");
mkdirSync(folder, { recursive: true });

const all = few ? looks : [...looks, { width: 1920, theme: "light" } as const, { width: 1920, theme: "dark" } as const];

describe.each(crowds)("with %i nodes", (nodes) => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await Stage.open({ nodes });
  });
  afterAll(() => stage.close());

  describe.each(all)("$width px, $theme", ({ width, theme }) => {
    let page: Page;
    const take = (name: string) => page.screenshot({ path: `${folder}/${name}-${nodes}-${width}-${theme}.png` });
    beforeAll(async () => {
      page = await newWindow(stage, { width, theme, height: width < 500 ? 844 : 900 });
      allow(page, /status of 404/);
      await page.goto(`${stage.url}/admin/`);
      await page.getByLabel("API key").waitFor();
      await take("login");
      await signIn(page, stage);
    });
    afterAll(() => closeWindow(page));
    test.each(Object.entries(screens))("%s", async (name, path) => {
      await page.goto(`${stage.url}/admin${path}`);
      await settled(page);
      await take(name);
    });
  });
});
