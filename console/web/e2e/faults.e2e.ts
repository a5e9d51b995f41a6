import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allow, axe, closeWindow, eventually, go, newTab, Stage, signedIn, withBrowser } from "./rig";

withBrowser();
let stage: Stage;
let page: Page;
const name = "api-ams-1";

beforeAll(async () => {
  stage = await Stage.open({ nodes: 240 });
  page = await signedIn(stage, "/admin/nodes");
  allow(page, /status of (5\d\d|412)/, /ERR_INCOMPLETE_CHUNKED_ENCODING/);
});
afterAll(async () => {
  await closeWindow(page);
  await stage.close();
});

const first = () => page.locator("tr[data-row]").first();
const nameOf = async (row = first()) =>
  ((await row.getByRole("button", { name: /^Actions for / }).getAttribute("aria-label")) ?? "").replace(
    "Actions for ",
    "",
  );
const rename = async (to: string) => {
  await first()
    .getByRole("button", { name: /^Actions for / })
    .click();
  await page.getByRole("menuitem", { name: "Rename" }).click();
  await page.getByLabel("Name", { exact: true }).fill(to);
  await page.getByRole("button", { name: "Rename", exact: true }).click();
};

describe("when something fails", () => {
  test("a change is reverted, and its error has a reason and a request ID", async () => {
    await page.getByLabel("Filter nodes").fill(name);
    await first().getByText(name).first().waitFor();
    await stage.faults({ method: "POST", path: "/rename/", status: 500 });
    await rename("never");
    await page.getByText(`Couldn't rename ${name}`).first().waitFor();
    await page
      .getByText(/^Request ID: /)
      .first()
      .waitFor();
    expect(await nameOf()).toBe(name);
    expect(await axe(page)).toEqual([]);
    await stage.faults();
    await page.getByRole("button", { name: "Dismiss" }).last().click();
  });

  test("a list shows the error in its place, with a retry button", async () => {
    await stage.faults({ path: "^/api/v1/node$", status: 500 });
    await page.goto(`${stage.url}/admin/nodes`);
    const again = page.getByRole("button", { name: "Try again" });
    await again.waitFor();
    expect(await axe(page)).toEqual([]);
    await stage.faults();
    await again.click();
    await first().waitFor();
  });

  test("a partly loaded list says so until it is complete", async () => {
    await stage.faults({ path: "^/api/v1/node$", query: "cursor=", status: 500 });
    await page.goto(`${stage.url}/admin/nodes`);
    const told = page.getByRole("alert").filter({ hasText: "Some nodes couldn't be loaded" });
    await told.waitFor();
    await first().waitFor();
    const all = page.getByRole("tab", { name: /^All/ });
    await eventually(async () => expect(await all.textContent()).toContain("200"));
    expect(await axe(page)).toEqual([]);
    // Changes to the nodes that are already loaded must not make the list count as complete.
    const [one] = JSON.parse(await stage.cli("nodes", "list", "--output", "json")) as { givenName: string }[];
    await stage.cli("nodes", "rename", one?.givenName ?? "", "part-of-it");
    await page.getByLabel("Filter nodes").fill("part-of-it");
    await first().getByText("part-of-it").first().waitFor();
    await told.waitFor();
    await stage.faults();
    await told.getByRole("button", { name: "Try again" }).click();
    await told.waitFor({ state: "detached" });
    await page.getByLabel("Filter nodes").fill("");
    await eventually(async () => expect(await all.textContent()).toMatch(/2[4-9]\d/));
  });

  test("a slow server shows placeholders", async () => {
    await stage.faults({ path: "^/api/v1/node$", wait: 1500 });
    await page.goto(`${stage.url}/admin/nodes`);
    await page.getByRole("heading", { name: "Nodes", level: 1 }).waitFor();
    await eventually(async () => expect(await page.locator("tr[data-row]").count()).toBe(0));
    await page.locator("main .skeleton").first().waitFor();
    await first().waitFor();
    await stage.faults();
  });

  test("the event stream reconnects without missing changes", async () => {
    await go(page, stage, "/admin/nodes");
    await page.getByText("Live", { exact: true }).first().waitFor();
    await page.getByLabel("Filter nodes").fill(name);
    await first().getByText(name).first().waitFor();
    await stage.faults({ path: "/api/v1/events", refuse: true });
    await stage.cut();
    await page
      .getByText(/Reconnecting|Offline since/)
      .first()
      .waitFor({ timeout: 30_000 });
    await stage.device(name, false);
    await stage.faults();
    await page.getByText("Live", { exact: true }).first().waitFor({ timeout: 60_000 });
    await first().getByRole("img", { name: "Offline" }).waitFor({ timeout: 30_000 });
    await stage.device(name, true);
    await first().getByRole("img", { name: "Online" }).waitFor();
  });

  test("a server that hangs is reported within 20 seconds, also after a reload, and recovers by itself", async () => {
    await go(page, stage, "/admin/nodes");
    await page.getByText("Live", { exact: true }).first().waitFor();
    await stage.faults({ path: ".", wait: 600_000 });
    await page.getByText(/^Offline since/).waitFor({ timeout: 20_000 });
    await page.reload();
    await page.getByRole("alert").waitFor({ timeout: 30_000 });
    const navigation = page.getByRole("navigation", { name: "Main" });
    await navigation.getByRole("link", { name: "Users" }).waitFor();
    expect(await axe(page)).toEqual([]);
    // The message stays while the console retries.
    for (let i = 0; i < 20; i++) {
      await eventually(async () => expect(await page.getByRole("alert").count()).toBe(1));
      await page.waitForTimeout(500);
    }
    await stage.faults();
    await first().waitFor({ timeout: 30_000 });
    await page.getByText("Live", { exact: true }).first().waitFor();
  });

  test("two conflicting changes show who was first, and ask which one to keep", async () => {
    await page.getByLabel("Filter nodes").fill(name);
    await first().getByText(name).first().waitFor();
    await first()
      .getByRole("button", { name: /^Actions for / })
      .click();
    // The dialog first reads what it is about to change.
    const read = page.waitForResponse(/\/api\/v1\/node\/\d+$/);
    await page.getByRole("menuitem", { name: "Rename" }).click();
    await page.getByLabel("Name", { exact: true }).fill("mine");
    await read;
    await stage.cli("nodes", "rename", name, "theirs");
    await page.getByRole("button", { name: "Rename", exact: true }).click();
    const asked = page.getByRole("alert").filter({ hasText: /changed this \d+ seconds? ago/ });
    await asked.waitFor();
    await eventually(async () =>
      expect(await asked.textContent()).toMatch(/on the server changed this|API key \w+ changed this/),
    );
    await eventually(async () => expect(await asked.textContent()).toContain("theirs"));
    expect(await axe(page)).toEqual([]);
    await page.getByRole("button", { name: "Keep mine" }).click();
    await page.getByText("renamed to mine").first().waitFor();
    expect(await stage.cli("nodes", "list", "--output", "json")).toContain('"mine"');
  });

  test("a page notices another key from another tab, and then changes and signing out work", async () => {
    await go(page, stage, "/admin/nodes");
    const other = await newTab(stage, page.context());
    await go(other, stage, "/admin/nodes");
    allow(page, /status of 403/);
    const next = await stage.key();
    const changed = await other.evaluate(async (key) => {
      const { csrf } = await (await fetch("/admin/api/session")).json();
      const headers = { "Content-Type": "application/json", "X-CSRF": csrf };
      const answer = await fetch("/admin/api/session", { method: "POST", headers, body: JSON.stringify({ key }) });
      return answer.status;
    }, next);
    expect(changed).toBe(200);
    await other.close();
    await page.getByLabel("Filter nodes").fill("part-of-it");
    await first().getByText("part-of-it").first().waitFor();
    await rename("in-the-name-of-another");
    await page.getByText("Another tab switched to a different API key").first().waitFor();
    expect(await nameOf()).toBe("part-of-it");
    await page.getByRole("button", { name: "Dismiss" }).last().click();
    await rename("changed-all-the-same");
    await page.getByText("renamed to changed-all-the-same").first().waitFor();
    await page.getByRole("button", { name: "Signed in with this API key" }).click();
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await page.getByLabel("API key").waitFor();
  });
});
