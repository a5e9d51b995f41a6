import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { asStory, axe, closeWindow, eventually, go, Stage, signedIn, withBrowser } from "./rig";

withBrowser();
asStory();
let stage: Stage;
let page: Page;

beforeAll(async () => {
  stage = await Stage.open({ nodes: 40 });
  page = await signedIn(stage, "/admin/users");
});
afterAll(async () => {
  await closeWindow(page);
  await stage.close();
});

const row = (of: string) =>
  page.locator("tr[data-row]").filter({ has: page.getByRole("button", { name: `Actions for ${of}`, exact: true }) });
const act = async (of: string, what: string) => {
  await row(of)
    .getByRole("button", { name: `Actions for ${of}` })
    .click();
  await page.getByRole("menuitem", { name: what }).click();
};
const users = async () =>
  (JSON.parse(await stage.cli("users", "list", "--output", "json")) as { name: string }[]).map((user) => user.name);
const nodes = async () =>
  JSON.parse(await stage.cli("nodes", "list", "--output", "json")) as {
    givenName: string;
    tags: string[];
    user: { name: string };
  }[];

describe("a user", () => {
  /** A user who owns nodes. */
  let owner = "";
  let owned: string[] = [];

  beforeAll(async () => {
    const all = (await nodes()).filter((node) => node.tags.length === 0);
    owner = all[0]?.user.name ?? "";
    owned = all.filter((node) => node.user.name === owner).map((node) => node.givenName);
  });

  test("is created, and appears in the list at once", async () => {
    await page.getByRole("button", { name: "Create user" }).first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name", { exact: true }).fill("ana");
    await dialog.getByText("A user named ana already exists").waitFor();
    await dialog.getByLabel("Name", { exact: true }).fill("zita");
    await dialog.getByLabel("Display name (optional)").fill("Zita Example");
    expect(await axe(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Create user" }).click();
    await row("zita").waitFor();
    await row("zita").getByText("Zita Example").waitFor();
    await eventually(async () => expect(await users()).toContain("zita"));
  });

  test("gets a pre-auth key", async () => {
    await act("zita", "Create pre-auth key");
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Create key" }).click();
    await eventually(async () =>
      expect(await page.getByRole("textbox", { name: "Your new pre-auth key" }).inputValue()).toMatch(/^flp_/),
    );
    await page.getByLabel("I've saved this secret").check();
    await page.getByRole("dialog").getByRole("button", { name: "Close", exact: true }).last().click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await eventually(async () => expect(await stage.cli("preauthkeys", "list", "--user", "zita")).toContain("flp_"));
  });

  test("without nodes is deleted, optionally with the tagged nodes that they added", async () => {
    await stage.join("labbox", await stage.cli("preauthkeys", "create", "--user", "zita", "--tags", "tag:lab"));
    await act("zita", "Delete");
    await page.getByRole("dialog").getByText("1 usable pre-auth key is deleted too").waitFor();
    await page.getByRole("dialog").getByText("labbox").waitFor();
    await page.getByRole("dialog").getByLabel("Also delete this tagged node").check();
    await page.getByRole("button", { name: "Delete zita" }).click();
    await row("zita").waitFor({ state: "detached" });
    await eventually(async () => expect(await users()).not.toContain("zita"));
    await eventually(async () => expect((await nodes()).map((node) => node.givenName)).not.toContain("labbox"));
  });

  test("is shown with their nodes", async () => {
    await row(owner).getByRole("link", { name: owner }).first().click();
    await page.getByRole("heading", { level: 1, name: owner }).waitFor();
    expect(owned).not.toEqual([]);
    for (const name of owned) await page.getByRole("link", { name }).first().waitFor();
    expect(await axe(page)).toEqual([]);
  });

  test("gives all nodes to somebody else, and takes them back", async () => {
    const mine = (await nodes()).filter((node) => node.tags.length === 0);
    const other = mine.map((node) => node.user.name).find((name) => name !== owner) ?? "";
    const ownerOf = async (name: string) => (await nodes()).find((node) => node.givenName === name)?.user.name;
    await go(page, stage, "/admin/users");
    await act(owner, "Change owner of nodes");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("New owner").selectOption({ label: other });
    await eventually(async () =>
      expect(await dialog.getByRole("option", { name: owner, exact: true }).count()).toBe(0),
    );
    expect(await axe(page)).toEqual([]);
    await dialog.getByRole("button", { name: `Change owner of ${owned.length} node` }).click();
    await dialog.waitFor({ state: "detached" });
    for (const name of owned) expect(await ownerOf(name)).toBe(other);
    await page.getByRole("button", { name: "Undo" }).first().click();
    for (const name of owned) await eventually(async () => expect(await ownerOf(name)).toBe(owner));
  });

  test("with nodes is deleted after the nodes are moved to somebody else", async () => {
    const mine = (await nodes()).filter((node) => node.tags.length === 0);
    const [leaver = "", heir = ""] = [...new Set(mine.map((node) => node.user.name))].filter((name) => name !== owner);
    const theirs = mine.filter((node) => node.user.name === leaver).map((node) => node.givenName);
    expect(theirs).not.toEqual([]);
    await go(page, stage, "/admin/users");
    await act(leaver, "Delete");
    const dialog = page.getByRole("dialog");
    const submit = dialog.getByRole("button", { name: `Delete ${leaver}` });
    await dialog.getByRole("radio", { name: "Move to another user" }).check({ force: true });
    expect(await submit.isDisabled()).toBe(true);
    await eventually(async () =>
      expect(await dialog.getByRole("option", { name: leaver, exact: true }).count()).toBe(0),
    );
    await dialog.getByLabel("Move their nodes to").selectOption({ label: heir });
    expect(await axe(page)).toEqual([]);
    await submit.click();
    await dialog.waitFor({ state: "detached" });
    await row(leaver).waitFor({ state: "detached" });
    expect(await users()).not.toContain(leaver);
    const after = await nodes();
    for (const name of theirs) expect(after.find((node) => node.givenName === name)?.user.name).toBe(heir);
  });

  test("with nodes is deleted together with them after the name is typed", async () => {
    await go(page, stage, "/admin/users");
    await act(owner, "Delete");
    const dialog = page.getByRole("dialog");
    const submit = dialog.getByRole("button", { name: `Delete ${owner}` });
    await dialog.getByText(`${owner} owns ${owned.length} node`).waitFor();
    expect(await submit.isDisabled()).toBe(true);
    await dialog.getByLabel(/Also delete (this node|these \d+ nodes)$/).check();
    expect(await submit.isDisabled()).toBe(true);
    await dialog.getByLabel(`Type ${owner} to confirm`).fill(owner);
    expect(await axe(page)).toEqual([]);
    await submit.click();
    await dialog.waitFor({ state: "detached" });
    await row(owner).waitFor({ state: "detached" });
    await eventually(async () => expect(await users()).not.toContain(owner));
    expect((await nodes()).map((node) => node.user.name)).not.toContain(owner);
  });
});
