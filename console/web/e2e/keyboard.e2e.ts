import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { asStory, closeWindow, eventually, newWindow, Stage, withBrowser } from "./rig";

withBrowser();
asStory();
let stage: Stage;
let page: Page;
beforeAll(async () => {
  stage = await Stage.open({ nodes: 40 });
  page = await newWindow(stage);
  // The tests in this file must not use the mouse.
  for (const part of ["click", "dblclick", "move", "down", "wheel"] as const)
    page.mouse[part] = () => Promise.reject(new Error("by keyboard alone"));
});
afterAll(async () => {
  await closeWindow(page);
  await stage.close();
});

const press = async (...keys: string[]) => {
  for (const key of keys) await page.keyboard.press(key);
};
const focused = () =>
  page.evaluate(() => {
    const e = document.activeElement as HTMLElement | null;
    return {
      name: e?.getAttribute("aria-label") ?? e?.textContent ?? "",
      tag: e?.tagName ?? "",
      row: e?.dataset.row ?? "",
    };
  });
const heading = (name: string | RegExp) => page.getByRole("heading", { name, level: 1 }).waitFor();

/** Presses Tab until the target has the focus. */
async function tabTo(target: Locator) {
  for (let i = 0; i < 80; i++) {
    await press("Tab");
    if (await target.evaluateAll((found) => found.includes(document.activeElement as HTMLElement))) return;
  }
  throw new Error(`Tab does not lead to ${target}`);
}

describe("with only a keyboard, somebody", () => {
  test("signs in", async () => {
    await page.goto(`${stage.url}/admin/`);
    await page.locator("input:focus").waitFor(); // the field takes the focus on its own
    await page.keyboard.type(stage.admin);
    await press("Enter");
    await heading("Overview");
  });

  test("skips to the content", async () => {
    await press("Tab");
    expect((await focused()).name).toBe("Skip to content");
    await press("Enter");
    expect(await page.evaluate(() => document.activeElement?.closest("main") !== null)).toBe(true);
  });

  test("opens every page", async () => {
    const pages: [string, RegExp][] = [
      ["n", /^Nodes/],
      ["u", /^Users/],
      ["r", /^Routes/],
      ["k", /^Pre-auth keys/],
      ["q", /^(Login )?[Rr]equests/],
      ["a", /^Access map/],
      ["t", /^Timeline/],
      ["p", /^Policy/],
      ["o", /^Overview/],
    ];
    for (const [key, title] of pages) {
      await press("g", key);
      await heading(title);
    }
  });

  test("filters a list, and leaves the filter", async () => {
    await press("g", "n");
    await page.locator("tr[data-row]").first().waitFor();
    await press("/");
    expect((await focused()).name).toBe("Filter nodes");
    await page.keyboard.type("api-");
    await eventually(async () => {
      for (const name of await page.locator("tr[data-row]").allTextContents()) expect(name).toContain("api-");
    });
    await eventually(() => expect(page.url()).toContain("q=api-"));
    // The first Escape clears the field, the second leaves it.
    await press("Escape", "Escape");
    expect((await focused()).name).not.toBe("Filter nodes");
  });

  test("moves in a list, renames a node, and returns to the same row", async () => {
    await press("j", "j");
    await page.locator("tr[data-row]:focus").waitFor();
    const before = await focused();
    await press("e");
    const field = page.getByLabel("Name", { exact: true });
    await field.waitFor();
    await page.keyboard.type("by-keyboard");
    await press("Enter");
    await page.getByText("renamed to by-keyboard").first().waitFor();
    await eventually(async () => expect((await focused()).row).toBe(before.row));
    expect(await stage.cli("nodes", "list", "--output", "json")).toContain('"by-keyboard"');
  });

  test("opens a menu, moves in it, and closes only the menu", async () => {
    await press("Escape");
    await tabTo(page.getByRole("button", { name: /^Actions for / }));
    const before = await focused();
    await press("Enter");
    await page.getByRole("menu").waitFor();
    await press("ArrowDown", "ArrowDown", "Escape");
    await page.getByRole("menu").waitFor({ state: "detached" });
    await eventually(async () => expect(await focused()).toEqual(before));
  });

  test("creates a key in a dialog that keeps the focus", async () => {
    await press("g", "k");
    await heading(/^Pre-auth keys/);
    await press("c");
    const dialog = page.getByRole("dialog");
    await dialog.waitFor();
    for (let i = 0; i < 30; i++) {
      await press("Tab");
      expect(await page.evaluate(() => document.activeElement?.closest("[role=dialog]") !== null)).toBe(true);
    }
    await tabTo(dialog.getByLabel("User", { exact: true }));
    await page.keyboard.type("ana");
    await tabTo(dialog.getByRole("button", { name: "Create key" }));
    await press("Enter");
    await page.getByRole("textbox", { name: "Your new pre-auth key" }).waitFor();
    await tabTo(page.getByLabel("I've saved this secret"));
    await press("Space");
    await tabTo(dialog.getByRole("button", { name: "Close", exact: true }));
    await press("Enter");
    await dialog.waitFor({ state: "detached" });
  });

  test("finds a node with the command palette", async () => {
    await press("Control+k");
    await page.getByRole("combobox").or(page.locator("[cmdk-input]")).first().waitFor();
    await page.keyboard.type("by-keyboard");
    await page
      .getByRole("option", { name: /by-keyboard/ })
      .first()
      .waitFor();
    await press("Enter");
    await heading("by-keyboard");
  });

  test("edits the policy, and leaves the editor", async () => {
    await press("g", "p");
    await page.locator(".cm-content").waitFor();
    await tabTo(page.locator(".cm-content"));
    await press("Control+Home");
    await page.keyboard.type("// by keyboard");
    await press("Enter");
    await page
      .getByText(/unsaved/)
      .first()
      .waitFor();
    await press("Escape", "Tab");
    expect(await page.evaluate(() => document.activeElement?.closest(".cm-content") === null)).toBe(true);
  });

  test("sees the list of shortcuts, and where the focus is", async () => {
    await press("g", "n");
    await heading(/^Nodes/);
    await press("?");
    const help = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    await help.waitFor();
    await press("Escape");
    await help.waitFor({ state: "detached" });
    await press("Tab");
    const ring = await page.evaluate(() => {
      const style = getComputedStyle(document.activeElement as Element);
      return [style.outlineStyle, Number.parseFloat(style.outlineWidth)];
    });
    expect(ring[0]).not.toBe("none");
    expect(ring[1]).toBeGreaterThanOrEqual(2);
  });

  test("signs out", async () => {
    await press("Control+k");
    await page.keyboard.type("sign out");
    await page
      .getByRole("option", { name: /Sign out/ })
      .first()
      .waitFor();
    await press("Enter");
    await page.getByLabel("API key", { exact: true }).waitFor();
  });
});
