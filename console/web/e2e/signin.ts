import type { Page } from "playwright-core";
import { allow, closeWindow, type Look, newWindow, type Stage } from "./rig";

/** Waits for a page of the server. */
export const heading = (page: Page, name: string | RegExp) => page.getByRole("heading", { level: 1, name }).waitFor();

/** Signs in at the identity provider of a stage, with the keyboard, until it sends the browser back. */
export async function atProvider(page: Page, stage: Stage, name: string) {
  const back = (url: URL) => [stage.server, new URL(stage.direct).origin].some((at) => url.href.startsWith(`${at}/`));
  if (!back(new URL(page.url()))) await page.locator("form").first().waitFor();
  for (let forms = 0; forms < 3 && !back(new URL(page.url())); forms++) {
    const login = page.locator("input[name=login]");
    if (await login.count()) {
      await login.fill(name);
      await page.locator("input[name=password]").fill("password");
    }
    const at = page.url();
    await page.locator("button[type=submit]").first().focus();
    await page.keyboard.press("Enter");
    await page.waitForURL((url) => url.href !== at);
  }
}

/** Makes a person add a device. */
export async function addDevice(stage: Stage, person: string, device: string) {
  const page = await newWindow(stage);
  allow(page, /fonts\.googleapis\.com/, /status of (400|403|409)/, /favicon/);
  await page.goto(await stage.login(device));
  await atProvider(page, stage, person);
  await page.getByRole("button", { name: "Add this device" }).click();
  await heading(page, /wait|approv|joined/i);
  await closeWindow(page);
}

/** A window of a person who has signed in to the console with the identity provider. */
export async function personIn(stage: Stage, person: string, look: Look = {}): Promise<Page> {
  const page = await newWindow(stage, look);
  allow(page, /fonts\.googleapis\.com/, /favicon/);
  await page.goto(stage.direct);
  await page.getByRole("link", { name: "Sign in with Example ID" }).click();
  await atProvider(page, stage, person);
  await page.locator("main h1").first().waitFor();
  return page;
}
