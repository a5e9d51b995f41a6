import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { layers } from "./layers";
import { allow, axe, axeInBothThemes, closeWindow, eventually, Stage, signedIn, withBrowser } from "./rig";
import { settled } from "./screens";

withBrowser();
let stage: Stage;
let page: Page;
beforeAll(async () => {
  stage = await Stage.open({ nodes: 40 });
  await stage.knock("new-laptop");
  await stage.cli("webhooks", "create", "https://receiver.example.com/mesh");
  await stage.cli("relays", "create", "osl-1", "--region", "osl");
  await stage.cli("dns", "set", "--search-domains", "corp.example.com");
  await stage.cli("users", "suspend", "zoe");
  page = await signedIn(stage, "/admin/");
  allow(page, /status of 404/);
});
afterAll(async () => {
  await closeWindow(page);
  await stage.close();
});

const windows = [
  { name: "wide", width: 1440, height: 900 },
  { name: "phone", width: 390, height: 844 },
] as const;

const anyLayer = "[role=dialog], [role=menu], [data-panel], [role=listbox][id]:not([hidden])";
/** The layer that was opened last, if several are on top of each other. */
const open = () => page.locator(anyLayer).last();

/** A short name of the element that has the focus. */
const focused = () =>
  page.evaluate(() => {
    const { activeElement: at } = document;
    return at === document.body ? "" : `${at?.tagName} ${at?.getAttribute("aria-label") ?? at?.textContent ?? ""}`;
  });

describe.each(windows)("in a $name window, everyone can use", ({ name, width, height }) => {
  beforeAll(() => page.setViewportSize({ width, height }));
  /** The path of the loaded page if the next test can reuse it; otherwise empty. */
  let ready = "";

  const here = Object.entries(layers).filter(([, { only = name }]) => only === name);
  test.each(here)("%s", async (_, layer) => {
    if (ready !== layer.path) {
      await page.unrouteAll({ behavior: "wait" });
      await page.evaluate(() => sessionStorage.clear());
      await page.goto(`${stage.url}/admin${layer.path}`);
      await settled(page);
    }
    ready = "";
    await layer.open(page);
    await open().waitFor();
    // A layer that also exists in a wide window has the same colours there.
    const again = name === "phone" && !layer.only;
    expect(await (again ? axe(page, anyLayer, "structure") : axeInBothThemes(page, anyLayer))).toEqual([]);
    const box = await open().boundingBox();
    expect(box && box.y >= 0 && box.y + box.height <= height, "it is all on the screen").toBe(true);
    if (layer.close) await layer.close(page);
    else await page.keyboard.press("Escape");
    await open().waitFor({ state: "detached" });
    // A layer returns the focus a moment after it closes.
    await eventually(async () => expect(await focused()).not.toMatch(layer.uncalled ? /^$/ : /^$|^MAIN/));
    if (!layer.spoils && !layer.uncalled) ready = layer.path;
  });
});
