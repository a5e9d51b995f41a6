import type { Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { allow, axeInBothThemes, closeWindow, eventually, newTab, newWindow, Stage, withBrowser } from "./rig";
import { atProvider, heading } from "./signin";

withBrowser();
let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open({ provider: true });
});
afterAll(() => stage.close());

/** Checks that everyone can use the page, also on a phone. */
async function usable(page: Page) {
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: 900 });
    const found = await axeInBothThemes(page);
    // These pages have no scripts. Those that wait for a decision refresh themselves, and contain nothing to fill in.
    expect(
      found.filter((each) => !each.startsWith("meta-refresh:")),
      `${width} px`,
    ).toEqual([]);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(over, `${width} px: horizontal overflow`).toBeLessThanOrEqual(0);
  }
}

interface Node {
  name: string;
  user: { name: string } | null;
}
const owner = async (device: string) =>
  (JSON.parse(await stage.cli("nodes", "list", "--output", "json")) as Node[]).find((n) => n.name === device)?.user
    ?.name;
const joined = (device: string, user: string) => eventually(async () => expect(await owner(device)).toBe(user));

describe("a person with a browser", () => {
  let page: Page;
  beforeEach(async () => {
    page = await newWindow(stage);
    allow(page, /fonts\.googleapis\.com/, /status of (400|403|409|502|503)/, /favicon/);
    return () => closeWindow(page);
  });

  test("adds a device without a mouse, and may reload and go back at any time", async () => {
    await page.goto(await stage.login("laptop"));
    await atProvider(page, stage, "ann");
    await heading(page, "Add this device?");
    for (const text of ["ann@example.com", "laptop"]) await page.getByText(text, { exact: true }).waitFor();
    expect(page.url()).not.toMatch(/code=|state=/);
    await usable(page);
    await page.reload();
    await heading(page, "Add this device?");
    expect(await owner("laptop")).toBeUndefined();
    await page.keyboard.press("Tab");
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Add this device");
    await page.keyboard.press("Enter");
    await heading(page, /This device (was approved|has joined)/);
    await joined("laptop", "ann");
    await usable(page);
    await page.reload();
    await heading(page, "This device has joined");
    const before = await stage.cli("nodes", "list");
    await page.goBack();
    await heading(page, /This sign-in cannot continue|This device has joined/);
    await page.goForward();
    await heading(page, "This device has joined");
    expect(await stage.cli("nodes", "list")).toBe(before);
  });

  test("adds another device without typing anything, but not without confirming", async () => {
    await page.goto(await stage.login("desktop"));
    await atProvider(page, stage, "ann");
    await page.getByRole("button", { name: "Add this device" }).click();
    await joined("desktop", "ann");
    await page.goto(await stage.login("tablet")); // the session at the provider is open
    await heading(page, "Add this device?");
    await page.getByText("tablet", { exact: true }).waitFor();
    expect(await owner("tablet")).toBeUndefined();
    await page.getByRole("button", { name: "Add this device" }).click();
    await joined("tablet", "ann");
  });

  test("is told why, if the domain may not sign in", async () => {
    await page.goto(await stage.login("stranger"));
    await atProvider(page, stage, "eve");
    await heading(page, "You may not sign in here");
    await page.getByText("the domain of your email address may not sign in here").waitFor();
    await usable(page);
    await page.getByRole("link", { name: "ask an administrator" }).click();
    await heading(page, "This device is waiting to join");
    await usable(page);
    expect(await owner("stranger")).toBeUndefined();
  });

  test("gets a clear page if the provider stops midway, and continues when it is back", async () => {
    await page.goto(await stage.login("phone"));
    // Routes of playwright do not see redirects.
    const session = await page.context().newCDPSession(page);
    session.on("Fetch.requestPaused", async ({ requestId }) => {
      await stage.providerIs(false);
      await session.send("Fetch.continueRequest", { requestId });
    });
    await session.send("Fetch.enable", { patterns: [{ urlPattern: `${stage.server}/oidc/callback*` }] });
    await atProvider(page, stage, "bob");
    await heading(page, "Signing in failed");
    await usable(page);
    await session.detach();
    await page.getByRole("link", { name: "Try again" }).click();
    await page.getByText("Example ID cannot be reached at the moment.").waitFor();
    await page.getByRole("link", { name: "Sign in with Example ID" }).click();
    await heading(page, "Example ID cannot be reached");
    await usable(page);
    await page.goBack();
    await stage.providerIs(true);
    await page.locator("input[name=login]").waitFor(); // the page refreshes itself, and continues at the provider
    await atProvider(page, stage, "bob");
    await page.getByRole("button", { name: "Add this device" }).click();
    await joined("phone", "bob");
  });

  test("adds two devices in two tabs at the same time", async () => {
    const other = await newTab(stage, page.context());
    allow(other, /fonts\.googleapis\.com/, /favicon/);
    await page.goto(await stage.login("first"));
    await other.goto(await stage.login("second"));
    await atProvider(page, stage, "ann");
    await atProvider(other, stage, "ann");
    for (const [tab, device] of [
      [other, "second"],
      [page, "first"],
    ] as const) {
      await heading(tab, "Add this device?");
      await tab.getByText(device, { exact: true }).waitFor();
      await tab.getByRole("button", { name: "Add this device" }).click();
      await joined(device, "ann");
    }
  });

  test("cannot continue in another browser", async () => {
    await page.goto(await stage.login("victim"));
    await atProvider(page, stage, "ann");
    await heading(page, "Add this device?");
    const thief = await newWindow(stage);
    allow(thief, /status of 400/, /favicon/);
    await thief.goto(page.url());
    await heading(thief, "This sign-in cannot continue");
    await usable(thief);
    await closeWindow(thief);
    expect(await owner("victim")).toBeUndefined();
  });

  test("does not take over a user, unless an administrator links the account", async () => {
    await stage.cli("users", "create", "carl");
    await page.goto(await stage.login("carls-laptop"));
    await atProvider(page, stage, "carl");
    await heading(page, "This device was not added");
    const command = await page.getByText(/^fairlead users link USER/).innerText();
    await usable(page);
    const account = /'(.*)'/.exec(command)?.[1] ?? "";
    await stage.cli("users", "link", "carl", account);
    await page.getByRole("link", { name: "Try again" }).click();
    await page.getByRole("button", { name: "Add this device" }).click();
    await joined("carls-laptop", "carl");
  });
});
