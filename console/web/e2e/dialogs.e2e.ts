import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Layer, layers } from "./layers";
import { allow, axe, axeInBothThemes, closeWindow, eventually, fewLooks, Stage, signedIn, withBrowser } from "./rig";
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
  { name: "wide", width: 1440, height: 900, theme: "light" },
  { name: "phone", width: 390, height: 844, theme: "dark" },
] as const;

const pageOf = ({ path }: Layer) => path.replace(/\?.*/, "");
const pages = [...new Set(Object.values(layers).map(pageOf))];
/** The window in which a layer is checked with LOOKS=few: every other page is checked on a phone. */
const turn = (layer: Layer) => layer.only ?? (pages.indexOf(pageOf(layer)) % 2 === 0 ? "wide" : "phone");

const anyLayer = "[role=dialog], [role=menu], [data-panel], [role=listbox][id]:not([hidden])";
/** The layer that was opened last, if several are on top of each other. */
const open = () => page.locator(anyLayer).last();

/** A short name of the element that has the focus. */
const focused = () =>
  page.evaluate(() => {
    const { activeElement: at } = document;
    return at === document.body ? "" : `${at?.tagName} ${at?.getAttribute("aria-label") ?? at?.textContent ?? ""}`;
  });

describe.each(windows)("in a $name window, everyone can use", ({ name, width, height, theme }) => {
  beforeAll(async () => {
    await page.setViewportSize({ width, height });
    if (fewLooks) await page.emulateMedia({ colorScheme: theme });
  });
  const inspect = (layer: Layer) => {
    if (fewLooks) return axe(page, anyLayer, "all");
    // A layer that also exists in a wide window has the same colours there.
    const again = name === "phone" && !layer.only;
    return again ? axe(page, anyLayer, "structure") : axeInBothThemes(page, anyLayer);
  };
  /** The path of the loaded page if the next test can reuse it; otherwise empty. */
  let ready = "";

  const here = Object.entries(layers).filter(([, layer]) => (fewLooks ? turn(layer) : (layer.only ?? name)) === name);
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
    expect(await inspect(layer)).toEqual([]);
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
