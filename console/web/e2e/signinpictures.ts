import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allow, closeWindow, eventually, newWindow, Stage, withBrowser } from "./rig";
import { looks } from "./screens";
import { atProvider, heading } from "./signin";

withBrowser();
const folder = resolve(import.meta.dirname, "../../../dist/screens");
mkdirSync(folder, { recursive: true });

/** The pages on which a person signs in to add a device. */
describe("sign-in", () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await Stage.open({ provider: true });
    await stage.cli("users", "create", "carl");
  });
  afterAll(() => stage.close());

  test.each(looks)("$width px, $theme", async ({ width, theme }) => {
    const window = async () => {
      const page = await newWindow(stage, { width, theme, height: width < 500 ? 844 : 900 });
      allow(page, /fonts\.googleapis\.com/, /status of (400|403|409|503)/, /favicon/);
      return page;
    };
    const suffix = `${width}-${theme}.png`;
    for (const [name, person, title] of [
      ["confirm", "ann", "Add this device?"],
      ["refused", "eve", "You may not sign in here"],
      ["conflict", "carl", "This device was not added"],
    ] as const) {
      const page = await window();
      await page.goto(await stage.login("laptop"));
      await atProvider(page, stage, person);
      await heading(page, title);
      await page.screenshot({ path: `${folder}/signin-${name}-${suffix}`, fullPage: true });
      await closeWindow(page);
    }
    const page = await window();
    await page.goto(`${stage.server}/oidc/confirm/none`);
    await heading(page, "This sign-in cannot continue");
    await page.screenshot({ path: `${folder}/signin-lost-${suffix}` });
    await page.goto(`${await stage.login("laptop")}?ask`);
    await heading(page, "This device is waiting to join");
    await page.screenshot({ path: `${folder}/signin-ask-${suffix}`, fullPage: true });
    await closeWindow(page);
  });

  test("while the provider is down", async () => {
    await stage.providerIs(false);
    for (const { width, theme } of looks) {
      const page = await newWindow(stage, { width, theme, height: width < 500 ? 844 : 900 });
      allow(page, /status of 503/, /favicon/);
      const link = await stage.login("laptop");
      await eventually(async () => expect((await page.request.get(link)).url()).toContain("/auth/"));
      await page.goto(link);
      await page.getByText("Example ID cannot be reached").first().waitFor();
      await page.screenshot({ path: `${folder}/signin-down-${width}-${theme}.png`, fullPage: true });
      await page.getByRole("link", { name: "Sign in with Example ID" }).click();
      await heading(page, "Example ID cannot be reached");
      await page.screenshot({ path: `${folder}/signin-unreachable-${width}-${theme}.png` });
      await closeWindow(page);
    }
  });
});
