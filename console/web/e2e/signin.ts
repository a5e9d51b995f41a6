import type { Page } from "playwright-core";
import { allow, closeWindow, newWindow, type Stage } from "./rig";

/** Waits for a page of the server. */
export const heading = (page: Page, name: string | RegExp) => page.getByRole("heading", { level: 1, name }).waitFor();

/** Signs in at the identity provider of a stage, with the keyboard, until it sends the browser back. */
export async function atProvider(page: Page, stage: Stage, name: string) {
  const back = (url: URL) => url.href.startsWith(`${stage.server}/`);
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

/** Makes a person add a device that then waits for approval. */
export async function addDevice(stage: Stage, person: string, device: string) {
  const page = await newWindow(stage);
  allow(page, /fonts\.googleapis\.com/, /status of (400|403|409)/, /favicon/);
  await page.goto(await stage.login(device));
  await atProvider(page, stage, person);
  await page.getByRole("button", { name: "Add this device" }).click();
  await heading(page, /wait|approv/i);
  await closeWindow(page);
}
