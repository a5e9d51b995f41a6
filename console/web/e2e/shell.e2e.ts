import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allow, axe, closeWindow, eventually, go, newWindow, Stage, signedIn, signIn, withBrowser } from "./rig";
import { settled } from "./screens";

withBrowser();
let stage: Stage;
let page: Page;
beforeAll(async () => {
  stage = await Stage.open({ nodes: 40 });
  page = await signedIn(stage, "/admin/nodes");
});
afterAll(async () => {
  await closeWindow(page);
  await stage.close();
});

const asked = () => page.getByRole("dialog", { name: "Continue without saving the secret?" });

/** Reports whether the browser asks before it reloads the page, and dismisses the question. */
async function reloadAsks(): Promise<boolean> {
  const told = Promise.race([page.waitForEvent("dialog"), page.waitForEvent("load").then(() => undefined)]);
  const asking = page.evaluate(() => location.reload());
  const dialog = await told;
  await dialog?.dismiss();
  await asking;
  return dialog?.type() === "beforeunload";
}

describe("a secret that is shown once and not saved", () => {
  test("is not lost by the palette, Back or a reload", async () => {
    await go(page, stage, "/admin/nodes");
    await page.getByRole("link", { name: /^Pre-auth keys/ }).click();
    await page.getByRole("button", { name: "Create key" }).first().click();
    await page.getByRole("dialog").getByLabel("User", { exact: true }).selectOption({ index: 1 });
    await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
    const field = page.getByRole("textbox", { name: "Your new pre-auth key" });
    await field.waitFor();
    await page.keyboard.press("Control+k");
    await eventually(async () => expect(await page.locator("[cmdk-input]").count()).toBe(0));
    expect(await reloadAsks()).toBe(true);

    await page.evaluate(() => history.back());
    await asked().waitFor();
    expect(await axe(page)).toEqual([]);
    await asked().getByRole("button", { name: "Stay here" }).click();
    await asked().waitFor({ state: "detached" });
    await eventually(async () => expect(await field.inputValue()).toMatch(/^flp_/));
    expect(page.url()).toContain("/admin/keys");

    await page.getByLabel("I've saved this secret").check();
    await page.evaluate(() => history.back());
    await page.getByRole("heading", { name: /^Nodes/, level: 1 }).waitFor();
    await eventually(async () => expect(await asked().count()).toBe(0));
  });

  test("can be closed without saving, and nothing asks again", async () => {
    await go(page, stage, "/admin/keys");
    await page.getByRole("button", { name: "Create key" }).first().click();
    await page.getByRole("dialog").getByLabel("User", { exact: true }).selectOption({ index: 1 });
    await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
    await page.getByRole("button", { name: "Close without saving" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("link", { name: /^Users/ }).click();
    await page.getByRole("heading", { name: /^Users/, level: 1 }).waitFor();
  });

  test("of a new device is kept until somebody copies it or confirms that it may be lost", async () => {
    await go(page, stage, "/admin/nodes/new?kind=server");
    await page.getByLabel("Tags", { exact: true }).fill("tag:web");
    await page.getByRole("button", { name: "Create key" }).click();
    const field = page.getByRole("textbox", { name: "Pre-auth key" });
    const key = await field.inputValue();
    await page.getByRole("tab", { name: "Windows" }).click();
    await page.getByRole("radio", { name: /^Many servers or CI/ }).click();
    await asked().waitFor();
    await asked().getByRole("button", { name: "Stay here" }).click();
    await eventually(async () => expect(await field.inputValue()).toBe(key));
    await page.getByRole("link", { name: /^Users/ }).click();
    await asked().waitFor();
    await page.keyboard.press("Escape");
    await asked().waitFor({ state: "detached" });
    await eventually(async () => expect(await field.inputValue()).toBe(key));
    expect(await reloadAsks()).toBe(true);
    await page.getByRole("button", { name: "Copy command" }).click();
    await page.getByRole("link", { name: /^Users/ }).click();
    await page.getByRole("heading", { name: /^Users/, level: 1 }).waitFor();
  });
});

test("changed DNS settings are not lost by a link or a reload without a confirmation", async () => {
  await go(page, stage, "/admin/nodes");
  await go(page, stage, "/admin/settings/dns");
  const field = page.getByLabel("Search domains");
  await field.fill("unsaved.example.com");
  const question = page.getByRole("dialog", { name: "Leave without saving?" });
  await page.getByRole("link", { name: /^Users/ }).click();
  await question.waitFor();
  expect(await axe(page)).toEqual([]);
  await question.getByRole("button", { name: "Stay here" }).click();
  await question.waitFor({ state: "detached" });
  await eventually(async () => expect(await field.inputValue()).toBe("unsaved.example.com"));
  expect(await reloadAsks()).toBe(true);
  await page.getByRole("link", { name: /^Users/ }).click();
  await question.getByRole("button", { name: "Discard changes" }).click();
  await page.getByRole("heading", { name: /^Users/, level: 1 }).waitFor();
  await page.goBack();
  await field.waitFor();
  await eventually(async () => expect(await field.inputValue()).toBe(""));
  await page.getByRole("link", { name: /^Users/ }).click();
  await page.getByRole("heading", { name: /^Users/, level: 1 }).waitFor();
  await eventually(async () => expect(await question.count()).toBe(0));
});

describe("Esc", () => {
  test("closes a side panel from the list too, unless somebody is typing", async () => {
    await go(page, stage, "/admin/nodes?node=7");
    const panel = page.getByRole("complementary").filter({ has: page.getByRole("button", { name: "Close" }) });
    await panel.waitFor();
    await page.getByLabel("Filter nodes").focus();
    await page.keyboard.press("Escape");
    await eventually(async () => expect(await panel.count()).toBe(1));
    await page.locator("tr[data-row]").first().focus();
    await page.keyboard.press("Escape");
    await panel.waitFor({ state: "detached" });
    await eventually(() => expect(page.url()).not.toContain("node="));
  });
});

test("Esc closes the panel beside a list first, and then clears the selection", async () => {
  await go(page, stage, "/admin/nodes?node=7");
  const panel = page.getByRole("complementary").filter({ has: page.getByRole("button", { name: "Close" }) });
  await panel.waitFor();
  const first = page.locator("tr[data-row]").first();
  await first.getByRole("checkbox").click();
  await page.getByRole("toolbar").getByText("1 selected").waitFor();
  await first.focus();
  await page.keyboard.press("Escape");
  await panel.waitFor({ state: "detached" });
  await eventually(async () => expect(await page.getByRole("toolbar").getByText("1 selected").count()).toBe(1));
  await page.keyboard.press("Escape");
  await page.getByRole("toolbar").waitFor({ state: "detached" });
  await eventually(async () => expect(await first.getByRole("checkbox").getAttribute("aria-checked")).toBe("false"));
});

test("keys typed while a dialog loads trigger no shortcuts", async () => {
  let load = () => {};
  const loads = new Promise<void>((done) => {
    load = done;
  });
  const slow = await newWindow(stage);
  let held = 0;
  await slow.route("**/assets/dialogs-*.js", async (route) => {
    held++;
    await loads;
    await route.continue();
  });
  await signIn(slow, stage, stage.admin, "/admin/nodes");
  await slow.locator("tr[data-row]").first().waitFor();
  await slow.keyboard.press("j");
  await slow.locator("tr[data-row]:focus").waitFor();
  await slow.keyboard.press("t");
  await eventually(() => expect(held).toBeGreaterThan(0));
  await slow.keyboard.press("e");
  load();
  await slow.getByRole("dialog").getByRole("combobox", { name: "Tags", exact: true }).waitFor();
  await closeWindow(slow);
});

describe("the palette", () => {
  const ask = async (typed: string) => {
    await page.keyboard.press("Control+k");
    await page.locator("[cmdk-input]").fill(typed);
  };
  const option = (name: string) => page.getByRole("option", { name, exact: true });

  test.each([
    ["Create user", "/users", "Create user"],
    ["Create pre-auth key", "/keys", "Create pre-auth key"],
    ["Create API key", "/settings/api-keys", "Create API key"],
  ])("starts %s from any page, once", async (action, path, title) => {
    await go(page, stage, "/admin/timeline");
    await ask(action);
    await option(action).click();
    await page.getByRole("dialog", { name: title }).waitFor();
    await eventually(() => expect(new URL(page.url()).pathname + new URL(page.url()).search).toBe(`/admin${path}`));
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  test("opens the page to add a device", async () => {
    await go(page, stage, "/admin/timeline");
    await ask("add dev");
    await page.getByRole("option", { name: "Add device", exact: true, selected: true }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Add device", level: 1 }).waitFor();
  });

  test("has the actions of the menu of a node, with the same dialogs", async () => {
    await go(page, stage, "/admin/timeline");
    await ask("api-ams-1");
    for (const words of ["Rename api-ams-1", "Edit tags for api-ams-1", "Delete api-ams-1"])
      await option(words).waitFor();
    expect(await axe(page)).toEqual([]);
    await page.locator("[cmdk-input]").fill("ren api-ams-1");
    await page.getByRole("option", { name: "Rename api-ams-1", exact: true, selected: true }).waitFor();
    await page.keyboard.press("Enter");
    const field = page.getByLabel("Name", { exact: true });
    await field.fill("by-palette");
    await page.keyboard.press("Enter");
    await page.getByText("renamed to by-palette").first().waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await eventually(async () => expect(await stage.cli("nodes", "list", "--output", "json")).toContain('"api-ams-1"'));
  });

  test("gets everything that is typed while it loads", async () => {
    let load = () => {};
    const loads = new Promise<void>((done) => {
      load = done;
    });
    const slow = await newWindow(stage);
    await slow.route("**/assets/Palette-*.js", async (route) => {
      await loads;
      await route.continue();
    });
    await signIn(slow, stage, stage.admin, "/admin/nodes");
    await slow.locator("tr[data-row]").first().waitFor();
    await slow.keyboard.press("j");
    await slow.keyboard.press("j");
    await slow.locator("tr[data-row]:focus").waitFor();
    await slow.keyboard.press("Control+k");
    await slow.keyboard.type("tagx");
    await slow.keyboard.press("Backspace");
    await eventually(async () => expect(await slow.getByRole("dialog").count()).toBe(0));
    load();
    await slow.locator("[cmdk-input]").waitFor();
    await eventually(async () => expect(await slow.locator("[cmdk-input]").inputValue()).toBe("tag"));
    await slow.keyboard.type(":web");
    await eventually(async () => expect(await slow.locator("[cmdk-input]").inputValue()).toBe("tag:web"));
    await eventually(async () => expect(await slow.getByRole("dialog").count()).toBe(1));
    await closeWindow(slow);
  });

  test("closes with the shortcut that opened it", async () => {
    await page.keyboard.press("Control+k");
    await page.locator("[cmdk-input]").waitFor();
    await page.keyboard.press("Control+k");
    await page.locator("[cmdk-input]").waitFor({ state: "detached" });
  });
});

describe("without a connection, controls that change something", () => {
  const why = "Changes are disabled while the server is unreachable";
  const tip = () => page.getByRole("tooltip").filter({ hasText: why });

  test("do nothing and say why: buttons, bulk actions, menus and switches", async () => {
    allow(page, /ERR_INCOMPLETE_CHUNKED_ENCODING/, /status of 5\d\d/);
    await go(page, stage, "/admin/nodes");
    await page.getByText("Live", { exact: true }).first().waitFor();
    const row = page.locator("tr[data-row]").first();
    await row.getByRole("checkbox").click();
    await stage.faults({ path: "/api/v1/events", refuse: true });
    await stage.cut();
    await page.getByText(/^Offline since/).waitFor({ timeout: 60_000 });

    const bulk = page.getByRole("toolbar").getByRole("button", { name: "Delete" });
    await bulk.hover();
    await tip().waitFor();
    await bulk.click({ force: true });
    await eventually(async () => expect(await page.getByRole("dialog").count()).toBe(0));

    await row.getByRole("button", { name: /^Actions for / }).click();
    const item = page.getByRole("menuitem", { name: "Rename" });
    await eventually(async () => expect(await item.getAttribute("aria-disabled")).toBe("true"));
    await item.hover();
    await tip().waitFor();
    await item.click({ force: true });
    await eventually(async () => expect(await page.getByRole("dialog").count()).toBe(0));
    expect(await axe(page)).toEqual([]);
    await page.keyboard.press("Escape");

    await page.getByRole("link", { name: /^Routes/ }).click();
    const turn = page.getByRole("switch").first();
    const before = await turn.getAttribute("aria-checked");
    await turn.hover();
    await tip().waitFor();
    await turn.click({ force: true });
    await eventually(async () => expect(await turn.getAttribute("aria-checked")).toBe(before));
    await stage.faults();
    await page.getByText("Live", { exact: true }).first().waitFor({ timeout: 60_000 });
    await eventually(async () => expect(await turn.getAttribute("aria-disabled")).toBe(null));
  });
});

test("a message does not cover the navigation, the bulk actions or the status of the policy", async () => {
  const message = page
    .getByRole("button", { name: "Dismiss" })
    .last()
    .locator("xpath=ancestor::div[contains(@class,'pointer-events-auto')]");
  const clear = async (...others: Locator[]) => {
    const box = await message.boundingBox();
    if (!box) throw new Error("there is no message");
    for (const other of others) {
      const by = await other.boundingBox();
      if (!by) throw new Error(`${other} is not there`);
      const apart =
        box.x >= by.x + by.width ||
        by.x >= box.x + box.width ||
        box.y >= by.y + by.height ||
        by.y >= box.y + box.height;
      expect(apart, `${other} is covered`).toBe(true);
    }
  };
  const rail = page.getByRole("navigation", { name: "Main" });
  await go(page, stage, "/admin/nodes?q=name:api-ams-1");
  const row = page.locator("tr[data-row]").first();
  await row.getByRole("checkbox").click();
  await row.getByRole("button", { name: /^Actions for / }).click();
  await page.getByRole("menuitem", { name: "Rename" }).click();
  await page.getByLabel("Name", { exact: true }).fill("covered");
  await page.keyboard.press("Enter");
  await message.waitFor();
  await clear(rail, page.getByRole("toolbar"));
  await page.getByRole("button", { name: "Undo" }).click();
  await eventually(async () => expect(await stage.cli("nodes", "list", "--output", "json")).toContain('"api-ams-1"'));
  await go(page, stage, "/admin/policy");
  await page.locator(".cm-content").waitFor();
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: /Format/ }).click();
  await message.waitFor();
  await clear(rail, page.getByRole("region", { name: "Problems" }));
});

describe("every page", () => {
  const paths = [
    "/",
    "/nodes",
    "/nodes/7",
    "/users",
    "/users/1",
    "/keys",
    "/requests",
    "/settings/dns",
    "/settings/server",
  ];

  test.each([1440, 1920])("has its title and its actions in the same place, %i px wide", async (width) => {
    const page = await signedIn(stage, "/admin/", { width, height: 1000 });
    const edges: Record<string, [number, number]> = {};
    for (const path of paths) {
      await go(page, stage, `/admin${path}`);
      // A page that is still loading may replace its title.
      await settled(page);
      edges[path] = await page
        .locator("main h1")
        .first()
        .evaluate((title) => {
          const head = title.parentElement?.getBoundingClientRect();
          return [title.getBoundingClientRect().left, head?.right ?? 0].map(Math.round) as [number, number];
        });
    }
    expect(new Set(Object.values(edges).map(String)), JSON.stringify(edges)).toHaveLength(1);
    const [left, right] = edges["/"] as [number, number];
    expect(width - right).toBe(left - 216);
    await closeWindow(page);
  });

  test("has its name and the network in the document title", async () => {
    const page = await signedIn(stage, "/admin/nodes");
    await eventually(async () =>
      expect(await page.title()).toMatch(/^Nodes · \d+ shown · [\w.:-]+ · Fairlead console$/),
    );
    await go(page, stage, "/admin/settings/dns");
    await eventually(async () => expect(await page.title()).toMatch(/^DNS · Settings · [\w.:-]+ · Fairlead console$/));
    const network = await page.getByRole("navigation", { name: "Main" }).innerText();
    expect(network).toContain((await page.title()).split(" · ").at(-2));
    await closeWindow(page);
  });

  test("has a button for shortcuts and a link to its documentation", async () => {
    const page = await signedIn(stage, "/admin/policy");
    const link = page.getByRole("link", { name: "Documentation" });
    await eventually(async () => expect(await link.getAttribute("href")).toMatch(/\/docs\/policy\.md$/));
    await page.getByRole("button", { name: "Keyboard shortcuts" }).click();
    await page.getByRole("dialog").getByText("Show keyboard shortcuts").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Routes", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "Routes" }).waitFor();
    await eventually(async () => expect(await link.getAttribute("href")).toMatch(/\/docs\/routes\.md$/));
    await closeWindow(page);
  });
});

describe("on a touch screen", () => {
  let phone: Page;
  beforeAll(async () => {
    const context = { hasTouch: true, isMobile: true, viewport: { width: 390, height: 844 } };
    phone = await signedIn(stage, "/admin/nodes", { context });
    await phone.getByRole("list", { name: "Node list" }).waitFor();
  });
  afterAll(() => closeWindow(phone));

  /** Holds a finger on the centre of an element. */
  const rest = async (on: Locator) => {
    const box = await on.boundingBox();
    if (!box) throw new Error("it is not there");
    const touchPoints = [{ x: box.x + box.width / 2, y: box.y + box.height / 2 }];
    const touch = await phone.context().newCDPSession(phone);
    await touch.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints });
    await phone.waitForTimeout(700);
    await touch.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
    await touch.detach();
  };

  test("a tap on a time shows it in full, and a tap elsewhere hides it", async () => {
    await go(phone, stage, "/admin/nodes?q=is:offline");
    await phone.locator("li time").first().tap();
    await phone.getByRole("tooltip").filter({ hasText: "UTC" }).waitFor();
    await phone.locator("h1").tap();
    await phone.getByRole("tooltip").waitFor({ state: "detached" });
  });

  test("a long press on a button shows its name without pressing it", async () => {
    const theme = phone.getByRole("button", { name: /^Theme: / });
    const before = await theme.getAttribute("aria-label");
    await rest(theme);
    await phone
      .getByRole("tooltip")
      .filter({ hasText: before ?? "?" })
      .waitFor();
    await eventually(async () => expect(await theme.getAttribute("aria-label")).toBe(before));
    await phone.locator("h1").tap();
    await phone.getByRole("tooltip").waitFor({ state: "detached" });
    await theme.tap();
    await eventually(async () => expect(await theme.getAttribute("aria-label")).not.toBe(before));
  });

  test("small controls can be hit from 15 pixels away", async () => {
    await go(phone, stage, "/admin/nodes/7");
    await phone
      .getByRole("button", { name: /^Copy / })
      .first()
      .waitFor();
    const hit = (name: string) =>
      phone.evaluate((label) => {
        const button = [...document.querySelectorAll("button")].find((b) => b.ariaLabel?.startsWith(label));
        const box = button?.getBoundingClientRect();
        if (!button || !box) return false;
        const found = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2 - 15);
        return box.height < 32 && button.contains(found);
      }, name);
    await go(phone, stage, "/admin/nodes?q=tag:db");
    await phone.getByRole("button", { name: "Clear filters" }).waitFor();
    expect(await hit("Clear filters")).toBe(true);
  });

  test("a list can be sorted, selected and exported", async () => {
    await go(phone, stage, "/admin/nodes");
    await phone.getByLabel("Sort by").selectOption("-node");
    await eventually(() => expect(phone.url()).toContain("sort=-node"));
    const rows = phone.getByRole("list", { name: "Node list" }).getByRole("listitem");
    const names = async () => (await rows.getByRole("button", { name: /^Actions for / }).all()).slice(0, 3);
    // The rows follow the URL a moment later.
    await eventually(async () => {
      const first = await Promise.all((await names()).map((each) => each.getAttribute("aria-label")));
      expect(first).toEqual([...first].sort().reverse());
    });

    await phone.getByRole("button", { name: "Select", exact: true }).tap();
    expect(await axe(phone)).toEqual([]);
    await phone
      .getByRole("checkbox", { name: /^Select / })
      .nth(1)
      .tap();
    await phone.getByRole("toolbar").getByText("1 selected").waitFor();
    await rows.getByRole("link").nth(3).tap();
    await phone.getByRole("toolbar").getByText("2 selected").waitFor();
    await phone.getByRole("checkbox", { name: "Select all" }).tap();
    const bar = phone.getByRole("toolbar");
    await bar.getByRole("button", { name: "Delete" }).waitFor();
    for (const button of await bar.getByRole("button").all()) {
      const box = await button.boundingBox();
      expect(box && box.x >= 0 && box.x + box.width <= 390, `${await button.innerText()} is on the screen`).toBe(true);
    }
    await phone.getByRole("region", { name: /scroll/i }).evaluate((list) => list.scrollTo(0, list.scrollHeight));
    await eventually(async () => {
      const last = await rows.last().boundingBox();
      const above = await bar.boundingBox();
      expect(last && above && last.y + last.height <= above.y, "the bar covers no row").toBe(true);
    });
    await phone.getByRole("button", { name: "Done" }).tap();
    await bar.waitFor({ state: "detached" });

    await phone.getByRole("button", { name: "Export" }).tap();
    const file = phone.waitForEvent("download");
    await phone.getByRole("menuitem", { name: /^CSV/ }).tap();
    expect((await file).suggestedFilename()).toMatch(/csv$/);
  });
});
