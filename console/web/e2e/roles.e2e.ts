import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allow, closeWindow, eventually, newWindow, Stage, signIn, withBrowser } from "./rig";
import { screens, settled } from "./screens";

withBrowser();
let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open({ nodes: 40 });
});
afterAll(() => stage.close());

/** Labels of buttons, links and menu items that change something. */
const writes =
  /^(add device|add tags|create|delete|rename|edit|approve|reject|disable|enable|expire|revoke|rotate|save|send|redeliver|change|review and save|try for|restore|reset)\b/i;

describe("a read-only key", () => {
  let page: Page;
  beforeAll(async () => {
    page = await newWindow(stage);
    allow(page, /status of 40[34]/);
    await signIn(page, stage, await stage.key("--role", "read"));
  });
  afterAll(() => closeWindow(page));

  test.each(Object.entries(screens))("sees no control on %s that changes something", async (_, path) => {
    await page.goto(`${stage.url}/admin${path}`);
    await settled(page);
    const offered = await page
      .locator("main")
      .locator("button, a, [role=switch], [role=menuitem]")
      .evaluateAll((all) => all.map((e) => (e.getAttribute("aria-label") ?? e.textContent ?? "").trim()));
    expect(offered.filter((words) => writes.test(words))).toEqual([]);
  });

  test("sees that it is read-only, and when it expires", async () => {
    await page.goto(`${stage.url}/admin/`);
    await settled(page);
    const bar = page.getByRole("banner");
    await bar.getByText("Read-only", { exact: true }).waitFor();
    await eventually(async () => expect(await bar.innerText()).toMatch(/API key \w{5}\s+expires in 89 days/));
  });

  test("has no unsaved policy, because it cannot save one", async () => {
    await page.goto(`${stage.url}/admin/policy`);
    await settled(page);
    await page.getByText("Your API key can't save the policy.").waitFor();
    await eventually(async () => expect(await page.locator("main h1").textContent()).toBe("Policy"));
    expect(await page.title()).not.toContain("unsaved");
  });

  test.each(["/users", "/routes", "/keys", "/settings/api-keys"])("cannot select rows on %s", async (path) => {
    await page.goto(`${stage.url}/admin${path}`);
    await page.locator("tr[data-row]").first().waitFor();
    await eventually(async () => expect(await page.getByRole("checkbox").count()).toBe(0));
  });

  test("has no changes in the menu of a row, and no shortcuts for them", async () => {
    await page.goto(`${stage.url}/admin/nodes`);
    await page.locator("tr[data-row]").first().waitFor();
    await page
      .locator("tr[data-row]")
      .first()
      .getByRole("button", { name: /^Actions for / })
      .click();
    const items = await page.getByRole("menuitem").allTextContents();
    expect(items.length).toBeGreaterThan(0);
    expect(items.filter((words) => writes.test(words))).toEqual([]);
    await page.keyboard.press("Escape");
    for (const key of ["j", "e", "t", "Delete", "c"]) await page.keyboard.press(key);
    await eventually(async () => expect(await page.getByRole("dialog").count()).toBe(0));
    expect(page.url()).not.toContain("/nodes/new");
    await page.keyboard.press("Control+k");
    await page.locator("[cmdk-input]").fill("api-ams-1");
    await page.getByRole("option").first().waitFor();
    const found = await page.getByRole("option").allTextContents();
    await page.locator("[cmdk-input]").fill("create");
    expect([...found, ...(await page.getByRole("option").allTextContents())].filter((w) => writes.test(w))).toEqual([]);
    await page.goto(`${stage.url}/admin/keys?create=1`);
    await settled(page);
    await eventually(async () => expect(await page.getByRole("dialog").count()).toBe(0));
  });
});

describe("a key without access to the history", () => {
  test("sees that the server is unreachable, changes nothing meanwhile, and recovers by itself", async () => {
    const page = await newWindow(stage);
    allow(page, /status of (403|50\d)/);
    await signIn(page, stage, await stage.key("--role", "operator", "--scope", "nodes,users"), "/admin/users");
    await page.getByText("Updated every 30 s", { exact: true }).waitFor();
    const create = page.getByRole("button", { name: "Create user" });
    expect(await create.isEnabled()).toBe(true);
    await stage.faults({ path: "^/", refuse: true });
    await page.getByText(/^Server unreachable since/).waitFor({ timeout: 40_000 });
    expect(await create.isDisabled()).toBe(true);
    await stage.faults();
    await page.getByText("Updated every 30 s", { exact: true }).waitFor();
    expect(await create.isEnabled()).toBe(true);
    await closeWindow(page);
  });
});

describe("an operator key", () => {
  test("can do everything except create keys and save the policy", async () => {
    const page = await newWindow(stage);
    allow(page, /status of 403/);
    await signIn(page, stage, await stage.key("--role", "operator"), "/admin/keys");
    await settled(page);
    await eventually(async () => expect(await page.getByRole("button", { name: "Create key" }).count()).toBe(0));
    await eventually(async () => expect(await page.getByText("Read-only", { exact: true }).count()).toBe(0));
    await page.goto(`${stage.url}/admin/policy`);
    await settled(page);
    await eventually(async () => expect(await page.getByRole("button", { name: "Review and save" }).count()).toBe(0));
    await page.goto(`${stage.url}/admin/nodes`);
    await page
      .locator("tr[data-row]")
      .first()
      .getByRole("button", { name: /^Actions for / })
      .click();
    await page.getByRole("menuitem", { name: "Rename" }).waitFor();
    await closeWindow(page);
  });
});
