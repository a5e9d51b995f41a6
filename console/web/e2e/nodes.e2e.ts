import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allow, axe, closeWindow, eventually, go, Stage, signedIn, withBrowser } from "./rig";

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
  user: { name: string };
  ipAddresses: string[];
  nodeKey: string;
  machineKey: string;
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
  test("shows every node, in groups whose counts add up and whose rows say why", async () => {
    const all = await nodes();
    // Skip nodes that flap: the next test checks how often they did.
    const steady = new Set((await presence()).filter(({ changes }) => changes === 0).map(({ nodeId }) => nodeId));
    const servers = all
      .filter((node) => node.tags.length > 0 && node.online && !node.ephemeral && steady.has(node.id))
      .slice(0, 10);
    for (const { id } of servers) await stage.cli("nodes", "expire", id, "--force");
    await page.mouse.move(0, 0);
    await listed(all.length);
    await page.getByRole("checkbox", { name: "Select all" }).click();
    await page.getByRole("toolbar").getByText(`${all.length} selected`).waitFor();
    await page.getByRole("button", { name: "Clear selection" }).click();

    // All rows of the first group and the next heading are on the screen, whichever columns fit.
    const reasons = /Key expired|Route pending|Tag without owner|Offline|Flapping/;
    for (const width of [1440, 820]) {
      await page.setViewportSize({ width, height: 2400 });
      await eventually(async () => {
        const entries = await page
          .locator("tbody tr[aria-rowindex]")
          .evaluateAll((rows) =>
            rows.map((r) => ({ head: r.hasAttribute("data-row") ? "" : r.textContent, words: r.textContent ?? "" })),
          );
        const heads = entries.flatMap(({ head }, at) => (head ? [{ at, count: Number(/\d+/.exec(head)?.[0]) }] : []));
        expect(heads.length).toBe(2);
        const [attention, rest] = heads.map(({ count }) => count);
        expect((attention ?? 0) + (rest ?? 0)).toBe(all.length);
        const shown = entries.slice(1, heads[1]?.at);
        expect(shown.length).toBe(attention);
        for (const { words } of shown) expect(words).toMatch(reasons);
      });
    }
    await page.setViewportSize({ width: 1440, height: 900 });
    for (const { id } of servers) await stage.cli("nodes", "expire", id, "--never", "--force");
    const ids = new Set(servers.map(({ id }) => id));
    await eventually(async () =>
      expect((await nodes()).filter(({ id, online }) => ids.has(id) && !online)).toEqual([]),
    );
  });

  test("marks a server that keeps disconnecting, and the overview links to its outages", async () => {
    const shaky = new Map((await presence()).filter(({ changes }) => changes > 3).map((each) => [each.nodeId, each]));
    const server = (await nodes()).find(
      (node) => node.tags.length > 0 && node.online && !node.ephemeral && shaky.has(node.id),
    );
    const { changes = 0 } = shaky.get(server?.id ?? "") ?? {};
    const name = server?.givenName ?? "";
    await go(page, stage, `/admin/nodes?q=name:${name}`);
    const strip = row(name).getByRole("img", { name: new RegExp(`, ${Math.floor(changes / 2)} outages$`) });
    await strip.waitFor();
    await eventually(async () => expect(await strip.locator("path[fill='var(--gap)']").count()).toBe(1));
    await go(page, stage, "/admin/");
    await page
      .getByRole("listitem")
      .filter({ hasText: "reconnected repeatedly in the last 24 hours" })
      .getByRole("link")
      .click();
    await page.getByRole("heading", { name: "Timeline", level: 1 }).waitFor();
    await page.getByRole("link", { name, exact: true }).first().waitFor();
    expect(new URL(page.url()).searchParams.get("nodes")?.split(",")).toContain(server?.id);
  });

  test("opens a row on a click, unless the click has another meaning", async () => {
    await go(page, stage, "/admin/nodes");
    await rows().nth(1).waitFor();
    const [first, second] = (await rows().evaluateAll((all) =>
      all.map((r) => (r as HTMLElement).dataset.row),
    )) as string[];
    const cells = (id = "") => page.locator(`tr[data-row="${id}"] > *`);
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
    await cells(second).nth(2).click();
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

  test("counts the results of a filter, next to it and in the tabs", async () => {
    await go(page, stage, "/admin/nodes");
    const db = (await nodes()).filter((node) => node.tags.includes("tag:db"));
    expect(db.length).toBeGreaterThan(1);
    await page.getByLabel("Filter nodes").fill("tag:db");
    await page.getByText(`${db.length} results`, { exact: true }).waitFor();
    const count = (tab: string) => page.getByRole("tab", { name: new RegExp(`^${tab} ?\\d`) }).innerText();
    await eventually(async () => {
      expect(await count("All")).toMatch(new RegExp(`\\b${db.length}$`));
      const online = (await nodes()).filter((node) => node.tags.includes("tag:db") && node.online && !node.expired);
      expect(await count("Online")).toMatch(new RegExp(`\\b${online.length}$`));
    });
    await eventually(async () => expect(await page.getByRole("button", { name: /^Remove filter/ }).count()).toBe(0));
    await page.getByLabel("Filter nodes").fill("");
    await page.getByText(`${db.length} results`, { exact: true }).waitFor({ state: "detached" });
  });

  test("changes the expiry of a key", async () => {
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
      await page.getByRole("radio", { name: days === 30 ? "30 days" : "1 year" }).check({ force: true });
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
    await page.getByRole("menuitem", { name: "Set key expiry" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText(/^Current expiry: .*\(in 1[12]mo\)\.$/).waitFor();
    await dialog.getByRole("radio", { name: "On a date" }).check({ force: true });
    const date = dialog.getByLabel(/^Date and time/);
    await date.fill("2020-01-01T10:00");
    await dialog.getByRole("alert").waitFor();
    const submit = dialog.getByRole("button", { name: "Set expiry" });
    expect(await submit.isDisabled()).toBe(true);
    const wanted = await page.evaluate(() => {
      const at = new Date(Math.floor(Date.now() / 60e3) * 60e3 + 10 * 864e5);
      return {
        at: at.getTime(),
        typed: new Date(at.getTime() - at.getTimezoneOffset() * 60e3).toISOString().slice(0, 16),
      };
    });
    await date.fill(wanted.typed);
    expect(await axe(page)).toEqual([]);
    await submit.click();
    await eventually(async () => expect(Date.parse((await named(name))?.expiry ?? "")).toBe(wanted.at));
  });

  test("undoes new tags of several nodes, and exports them", async () => {
    const some = (await nodes()).filter((node) => node.tags.length > 0 && node.online && !node.expired);
    // Pick three nodes with different tags.
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
    await page.getByRole("menuitem", { name: "CSV (selected rows)" }).click();
    const [head, ...lines] = (await readFile(await (await file).path(), "utf8")).trim().split("\r\n");
    expect(head).toMatch(/^Node,State,.*,Last seen,/);
    expect(lines.map((line) => line.split(",").slice(0, 2)).sort()).toEqual(
      names.map((name) => [name, "Online"]).sort(),
    );

    await bar.getByRole("button", { name: "Edit tags" }).click();
    await page.getByLabel("Tags", { exact: true }).fill("tag:web ");
    await page.getByRole("radio", { name: "Replace all" }).check({ force: true });
    await page.getByRole("button", { name: "Replace tags on 3 nodes" }).click();
    await eventually(async () => {
      for (const name of names) expect((await named(name))?.tags).toEqual(["tag:web"]);
    });
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Tags restored for 3 nodes").first().waitFor();
    for (const { givenName, tags } of three) expect((await named(givenName))?.tags).toEqual(tags);
  });

  test("adds tags with Enter, and takes a node from its user only after a confirmation", async () => {
    const owned = (await nodes()).find((node) => node.tags.length === 0 && node.online && !node.expired);
    const name = owned?.givenName ?? "";
    await go(page, stage, `/admin/nodes?q=name:${name}`);
    await row(name)
      .getByRole("button", { name: `Actions for ${name}` })
      .click();
    await page.getByRole("menuitem", { name: "Edit tags" }).click();
    const dialog = page.getByRole("dialog");
    const field = dialog.getByRole("combobox", { name: "Tags", exact: true });
    const chips = dialog.getByRole("list", { name: "Selected tags" }).getByRole("listitem");
    await dialog.getByRole("listbox").getByRole("option", { name: "tag:web", exact: true }).waitFor();

    await page.keyboard.type("web");
    await page.keyboard.press("Enter");
    await page.keyboard.type("tag:db");
    await page.keyboard.press("Enter");
    await eventually(async () => expect(await chips.allTextContents()).toEqual(["tag:web", "tag:db"]));
    await eventually(async () => expect(await field.inputValue()).toBe(""));
    await page.keyboard.press("Enter");
    const save = dialog.getByRole("button", { name: "Save tags" });
    expect(await save.isDisabled()).toBe(true);
    await page.keyboard.press("Backspace");
    await eventually(async () => expect(await chips.allTextContents()).toEqual(["tag:web"]));
    await page.keyboard.press("ArrowDown");
    const active = dialog.getByRole("option", { selected: true });
    await eventually(async () =>
      expect(await field.getAttribute("aria-activedescendant")).toBe(await active.getAttribute("id")),
    );
    const next = (await active.textContent()) ?? "";
    await page.keyboard.press("Enter");
    await eventually(async () => expect(await chips.allTextContents()).toEqual(["tag:web", next]));
    await dialog.getByRole("button", { name: `Remove ${next}` }).click();
    expect(await axe(page)).toEqual([]);
    expect((await named(name))?.tags).toEqual([]);

    await dialog.getByRole("checkbox", { name: /^Remove .* as the owner$/ }).click();
    await save.click();
    await eventually(async () => expect((await named(name))?.tags).toEqual(["tag:web"]));
  });

  test("moves a node to another user, and undoes it", async () => {
    const all = await nodes();
    const mine = all.filter((node) => node.tags.length === 0);
    const { id, givenName: name, user } = mine[0] as Listed;
    const other = mine.find((node) => node.user.name !== user.name)?.user.name ?? "";
    await go(page, stage, `/admin/nodes/${id}`);
    await page.getByRole("button", { name: "Change owner" }).click();
    const dialog = page.getByRole("dialog");
    const submit = dialog.getByRole("button", { name: "Change owner" });
    expect(await submit.isDisabled()).toBe(true);
    await eventually(async () =>
      expect(await dialog.getByRole("option", { name: user.name, exact: true }).count()).toBe(0),
    );
    await dialog.getByLabel("New owner").selectOption({ label: other });
    expect(await axe(page)).toEqual([]);
    await submit.click();
    await page.getByText(`${name} now belongs to ${other}`).first().waitFor();
    expect((await named(name))?.user.name).toBe(other);
    await page.getByRole("main").getByRole("link", { name: other, exact: true }).waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText(`${name} moved back to ${user.name}`).first().waitFor();
    expect((await named(name))?.user.name).toBe(user.name);
  });

  test("moves several nodes to a user, except tagged ones", async () => {
    const all = await nodes();
    const mine = all.filter((node) => node.tags.length === 0);
    const two = [...new Map(mine.map((node) => [node.user.name, node])).values()].slice(0, 2);
    const tagged = all.find((node) => node.tags.length > 0) as Listed;
    const other = [...new Set(mine.map((node) => node.user.name))][2] ?? "";
    await go(page, stage, "/admin/nodes");
    for (const { givenName } of [...two, tagged]) {
      await page.getByLabel("Filter nodes").fill(`name:${givenName}`);
      await row(givenName).getByRole("checkbox").click();
    }
    await page.getByRole("toolbar").getByRole("button", { name: "Change owner" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("1 of the selected nodes is tagged.").waitFor();
    await dialog.getByLabel("New owner").selectOption({ label: other });
    expect(await axe(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Change owner of 2 nodes" }).click();
    await page.getByText(`2 nodes now belong to ${other}`).first().waitFor();
    for (const { givenName } of two) expect((await named(givenName))?.user.name).toBe(other);
    expect((await named(tagged.givenName))?.tags).toEqual(tagged.tags);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Owners restored for 2 nodes").first().waitFor();
    for (const { givenName, user } of two) expect((await named(givenName))?.user.name).toBe(user.name);
    await page.getByRole("button", { name: "Clear selection" }).click();
  });

  test("changes the addresses of a node, and undoes it", async () => {
    const [node, other] = (await nodes()).filter((each) => each.online && !each.ephemeral) as [Listed, Listed];
    const { id, givenName: name, ipAddresses } = node;
    await go(page, stage, `/admin/nodes/${id}`);
    await page.getByRole("button", { name: "Change addresses" }).click();
    const dialog = page.getByRole("dialog");
    const submit = dialog.getByRole("button", { name: "Save addresses" });
    const field = dialog.getByLabel("IPv4");
    await eventually(async () => expect(await field.inputValue()).toBe(ipAddresses[0]));
    await field.fill("100.64.7");
    await dialog.getByText("Not a valid IPv4 address.").waitFor();
    await field.fill(other.ipAddresses[0] ?? "");
    await dialog.getByText(`${other.givenName} already has this address.`).waitFor();
    expect(await submit.isDisabled()).toBe(true);
    // Only the server checks the address range. Its error message does not close the dialog.
    allow(page, /status of 400/);
    await field.fill("192.0.2.1");
    await submit.click();
    await dialog.getByText(`Couldn't change the addresses of ${name}`).waitFor();
    const wanted = `100.64.77.${Number(id) % 250}`;
    await field.fill(wanted);
    expect(await axe(page)).toEqual([]);
    await submit.click();
    await page.getByText(`Addresses changed for ${name}`).first().waitFor();
    expect((await named(name))?.ipAddresses).toEqual([wanted, ipAddresses[1]]);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText(`Addresses restored for ${name}`).first().waitFor();
    expect((await named(name))?.ipAddresses).toEqual(ipAddresses);
  });

  test("shows the ID and the keys of a node, with copy buttons", async () => {
    const { id, nodeKey, machineKey } = (await nodes()).find((each) => each.online) as Listed;
    await go(page, stage, `/admin/nodes/${id}`);
    const section = page.getByRole("region", { name: "Identifiers" });
    for (const value of [id, nodeKey, machineKey]) await section.getByText(value, { exact: true }).waitFor();
    await section.getByText(/^discokey:/).waitFor();
    await page.evaluate(() => {
      navigator.clipboard.writeText = async (text) => void Object.assign(window, { copied: text });
    });
    await section.getByRole("button", { name: "Copy Machine key" }).click();
    await section.getByRole("button", { name: "Copy Machine key" }).locator(".text-ok").waitFor();
    expect(await page.evaluate(() => (window as unknown as { copied: string }).copied)).toBe(machineKey);
  });

  test("highlights a cell whose value has changed", async () => {
    const node = (await nodes()).find((each) => each.online && each.tags.length > 0 && !each.tags.includes("tag:web"));
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
