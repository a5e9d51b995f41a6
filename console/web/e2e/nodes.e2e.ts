import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { axe, closeWindow, eventually, go, Stage, signedIn, withBrowser } from "./rig";

withBrowser();
let stage: Stage;
let page: Page;

beforeAll(async () => {
  stage = await Stage.open({ nodes: 200 });
  page = await signedIn(stage, "/admin/nodes");
});
afterAll(async () => {
  await closeWindow(page);
  await stage.close();
});

interface Listed {
  id: string;
  givenName: string;
  tags: string[];
  online: boolean;
  ephemeral: boolean;
  expired: boolean;
  expiry: string | null;
}
interface Told {
  nodeId: string;
  changes: number;
}
const nodes = async () => JSON.parse(await stage.cli("nodes", "list", "--output", "json")) as Listed[];
const presence = async () => JSON.parse(await stage.cli("nodes", "presence", "--output", "json")) as Told[];
const named = async (name: string) => (await nodes()).find((node) => node.givenName === name);
const rows = () => page.locator("tr[data-row]");
const row = (name: string) => rows().filter({ has: page.getByRole("link", { name, exact: true }) });
/** Waits until the list has this many rows besides its header and the headings of two groups. */
const listed = (count: number) => page.locator(`table[aria-rowcount="${count + 3}"]`).waitFor();
const open = () => new URL(page.url()).searchParams.get("node");

describe("the list of nodes", () => {
  test("has every node, whatever many need attention", async () => {
    const all = await nodes();
    // Leave out nodes that flap: the next test looks at how often they did.
    const steady = new Set((await presence()).filter(({ changes }) => changes === 0).map(({ nodeId }) => nodeId));
    const servers = all
      .filter((node) => node.tags.length > 0 && node.online && !node.ephemeral && steady.has(node.id))
      .slice(0, 10);
    for (const { id } of servers) await stage.cli("nodes", "expire", id, "--force");
    await page.getByRole("button", { name: /^Show all/ }).waitFor();
    await page.mouse.move(0, 0);
    await listed(all.length);
    await page.getByRole("checkbox", { name: "Select all" }).click();
    await page.getByRole("toolbar").getByText(`${all.length} selected`).waitFor();
    await page.getByRole("button", { name: "Clear selection" }).click();

    await page.getByRole("button", { name: /^Show all/ }).click();
    await listed(all.length);
    expect(await page.getByRole("button", { name: /refresh order|^Show all/ }).count()).toBe(0);
    for (const { id } of servers) await stage.cli("nodes", "expire", id, "--never", "--force");
    const ids = new Set(servers.map(({ id }) => id));
    await eventually(async () =>
      expect((await nodes()).filter(({ id, online }) => ids.has(id) && !online)).toEqual([]),
    );
  });

  test("shows a server that comes and goes for minutes, and the overview leads to when", async () => {
    const shaky = new Map((await presence()).filter(({ changes }) => changes > 3).map((each) => [each.nodeId, each]));
    const server = (await nodes()).find(
      (node) => node.tags.length > 0 && node.online && !node.ephemeral && shaky.has(node.id),
    );
    const { changes = 0 } = shaky.get(server?.id ?? "") ?? {};
    const name = server?.givenName ?? "";
    await go(page, stage, `/admin/nodes?q=name:${name}`);
    const strip = row(name).getByRole("img", { name: new RegExp(`, ${Math.floor(changes / 2)} outages$`) });
    await strip.waitFor();
    expect(await strip.locator("path[fill='var(--gap)']").count()).toBe(1);
    await go(page, stage, "/admin/");
    await page
      .getByRole("listitem")
      .filter({ hasText: "went away and came back more than once today" })
      .getByRole("link")
      .click();
    await page.getByRole("heading", { name: "Timeline", level: 1 }).waitFor();
    await page.getByRole("link", { name, exact: true }).first().waitFor();
    expect(new URL(page.url()).searchParams.get("nodes")?.split(",")).toContain(server?.id);
  });

  test("opens a row at a click, and not at one that means something else", async () => {
    await go(page, stage, "/admin/nodes");
    await rows().nth(1).waitFor();
    const [first, second] = (await rows().evaluateAll((all) =>
      all.map((r) => (r as HTMLElement).dataset.row),
    )) as string[];
    const cells = (id = "") => page.locator(`tr[data-row="${id}"] td`);
    await cells(first).nth(5).click();
    await eventually(() => expect(open()).toBe(first));
    await cells(second)
      .nth(0)
      .click({ position: { x: 4, y: 4 } });
    await cells(second).getByRole("checkbox").click();
    await cells(second)
      .getByRole("button", { name: /^Actions/ })
      .click();
    await page.getByRole("menuitem", { name: "Copy address" }).click();
    await cells(first)
      .getByRole("button", { name: /^Actions/ })
      .click();
    await page.getByRole("menu").waitFor();
    await cells(second).nth(3).click();
    await page.getByRole("menu").waitFor({ state: "detached" });
    expect(open()).toBe(first);
    const words = await cells(second).nth(2).locator("span.font-mono").boundingBox();
    const { x, y, width, height } = words ?? { x: 0, y: 0, width: 0, height: 0 };
    await page.mouse.move(x + 1, y + height / 2);
    await page.mouse.down();
    await page.mouse.move(x + width - 1, y + height / 2);
    await page.mouse.up();
    expect(await page.evaluate(() => getSelection()?.toString())).toMatch(/^[\d.]+$/);
    expect(open()).toBe(first);
    await cells(second).nth(3).click();
    await eventually(() => expect(open()).toBe(second));
    await page.goBack();
    await eventually(() => expect(open()).toBe(first));
    await page.goBack();
    await eventually(() => expect(open()).toBe(null));
  });

  test("moves the expiry of a key that has one", async () => {
    await go(page, stage, "/admin/nodes");
    const { id, givenName: name } = (await nodes()).find((node) => node.expiry === null && node.online) ?? {
      id: "",
      givenName: "",
    };
    for (const [days, button] of [
      [30, "Set expiry"],
      [365, "Change expiry"],
    ] as const) {
      await go(page, stage, `/admin/nodes?node=${id}`);
      await page.getByRole("complementary").getByRole("button", { name: button }).click();
      await page.getByRole("radio", { name: days === 30 ? "30 days" : "A year" }).check({ force: true });
      expect(await axe(page)).toEqual([]);
      await page.getByRole("dialog").getByRole("button", { name: "Set expiry" }).click();
      await eventually(async () => {
        const left = Date.parse((await named(name))?.expiry ?? "") - Date.now();
        expect(Math.round(left / 864e5)).toBe(days);
      });
    }
    await go(page, stage, `/admin/nodes?q=name:${name}`);
    await row(name)
      .getByRole("button", { name: `Actions for ${name}` })
      .click();
    await page.getByRole("menuitem", { name: "Set key expiry" }).waitFor();
    await page.keyboard.press("Escape");
  });

  test("takes tags of several back, and takes several away as a file", async () => {
    const some = (await nodes()).filter((node) => node.tags.length > 0 && node.online && !node.expired);
    // Pick one node of each of three kinds, which differ in their tags.
    const three = [...new Map(some.map((node) => [node.tags.join(), node])).values()].slice(0, 3);
    expect(three.length).toBe(3);
    const names = three.map((node) => node.givenName);
    await go(page, stage, "/admin/nodes");
    for (const name of names) {
      await page.getByLabel("Filter nodes").fill(`name:${name}`);
      await row(name).getByRole("checkbox").click();
    }
    const bar = page.getByRole("toolbar");
    const file = page.waitForEvent("download");
    await bar.getByRole("button", { name: "Export" }).click();
    expect(await axe(page)).toEqual([]);
    await page.getByRole("menuitem", { name: "CSV of the selection" }).click();
    const [head, ...lines] = (await readFile(await (await file).path(), "utf8")).trim().split("\r\n");
    expect(head).toMatch(/^Node,State,.*,Last seen,/);
    expect(lines.map((line) => line.split(",").slice(0, 2)).sort()).toEqual(
      names.map((name) => [name, "Online"]).sort(),
    );

    await bar.getByRole("button", { name: "Tags" }).click();
    await page.getByLabel("Tags", { exact: true }).fill("tag:web ");
    await page.getByRole("radio", { name: "Replace all" }).check({ force: true });
    await page.getByRole("button", { name: "Replace tags of 3 nodes" }).click();
    await eventually(async () => {
      for (const name of names) expect((await named(name))?.tags).toEqual(["tag:web"]);
    });
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("nodes are as before.").first().waitFor();
    for (const { givenName, tags } of three) expect((await named(givenName))?.tags).toEqual(tags);
  });

  test("lights a cell up when what it shows has changed", async () => {
    const node = (await nodes()).find((each) => each.online && each.tags.length > 0);
    const name = node?.givenName ?? "";
    const moving = await signedIn(stage, `/admin/nodes?q=name:${name}`, {
      context: { reducedMotion: "no-preference" },
    });
    await moving.getByRole("link", { name, exact: true }).waitFor();
    await moving.evaluate(() => {
      const seen: string[] = [];
      Object.assign(window, { seen });
      document.addEventListener("animationstart", (event) => {
        if (event.animationName === "flash") seen.push((event.target as HTMLElement).innerText);
      });
    });
    const seen = () => moving.evaluate(() => (window as unknown as { seen: string[] }).seen);
    await stage.cli("nodes", "rename", name, `${name}-new`);
    await eventually(async () => expect(await seen()).toEqual([`${name}-new`]));
    await stage.cli("nodes", "tag", `${name}-new`, "--tags", "tag:web");
    await eventually(async () => expect((await seen()).at(-1)).toContain("web"));
    await closeWindow(moving);
  });
});
