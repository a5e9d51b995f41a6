import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allow, asStory, axe, axeInBothThemes, closeWindow, eventually, go, Stage, signedIn, withBrowser } from "./rig";
import { addDevice } from "./signin";

withBrowser();
asStory();
let stage: Stage;
let page: Page;

beforeAll(async () => {
  stage = await Stage.open({
    provider: true,
    set: {
      "node.approval_required": "true",
      "oidc.user_approval_required": "true",
      "oidc.recheck": "2s",
      "oidc.extra_params": '{"prompt": "consent"}', // for refresh tokens
    },
  });
  page = await signedIn(stage, "/admin/requests");
  allow(page, /favicon/);
});
afterAll(async () => {
  await closeWindow(page);
  await stage.close();
});

interface Waits {
  name: string;
  needsApproval?: boolean;
  suspendedAt?: string;
  suspensionHeldAt?: string;
}
const listed = async (what: "nodes" | "users", name: string) =>
  (JSON.parse(await stage.cli(what, "list", "--output", "json")) as Waits[]).find((each) => each.name === name);
const waits = (what: "nodes" | "users", name: string, wanted: boolean) =>
  eventually(async () => expect((await listed(what, name))?.needsApproval ?? false).toBe(wanted));

const answer = (what: "Approve" | "Delete", name: string) =>
  page.getByRole("button", { name: `${what} ${name}`, exact: true });
const row = (name: string) => page.locator("tr[data-row]").filter({ hasText: name });
const act = async (name: string, what: string) => {
  await row(name)
    .getByRole("button", { name: /^Actions for / })
    .click();
  await page.getByRole("menuitem", { name: what, exact: true }).click();
};

describe("a person who signed in for the first time", () => {
  test("waits on the page of requests, with the device, and both are counted in the navigation", async () => {
    await addDevice(stage, "ann", "laptop");
    await page.getByRole("list", { name: "Users waiting for approval" }).getByText("ann@example.com").waitFor();
    await page.getByRole("list", { name: "Nodes waiting for approval" }).getByText("laptop").waitFor();
    const rail = page.getByRole("navigation").getByRole("link", { name: /^Requests/ });
    await rail.filter({ hasText: "2" }).waitFor();
    expect(await axeInBothThemes(page)).toEqual([]);
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await axe(page)).toEqual([]);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(over, "horizontal overflow").toBeLessThanOrEqual(0);
    await page.setViewportSize({ width: 1440, height: 900 });
  });

  test("is approved with the keyboard alone", async () => {
    await answer("Approve", "ann").focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Approve ann?" });
    await dialog.waitFor();
    expect(await axe(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Approve ann" }).focus();
    await page.keyboard.press("Enter");
    await page.getByText("User ann approved").first().waitFor();
    await answer("Approve", "ann").waitFor({ state: "detached" });
    await waits("users", "ann", false);
    await waits("nodes", "laptop", true); // each device waits for its own approval
  });
});

describe("a node that waits", () => {
  test("is approved with one click, which can be undone", async () => {
    await answer("Approve", "laptop").click();
    await page.getByText("laptop approved").first().waitFor();
    await waits("nodes", "laptop", false);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Approval of laptop withdrawn").first().waitFor();
    await waits("nodes", "laptop", true);
    await answer("Approve", "laptop").waitFor();
  });

  test("has a badge in the list of nodes, a filter and a note on its page, and is approved there", async () => {
    await go(page, stage, "/admin/nodes?q=is:unapproved");
    await row("laptop").getByText("Needs approval").waitFor();
    await row("laptop").getByRole("link", { name: "laptop" }).click();
    const panel = page.locator("aside[data-panel]");
    await panel.getByText("This node is waiting for approval.").waitFor();
    expect(await axe(page)).toEqual([]);
    await panel.getByRole("button", { name: "Approve", exact: true }).click();
    await panel.getByText("This node is waiting for approval.").waitFor({ state: "detached" });
    await row("laptop").waitFor({ state: "detached" });
    await waits("nodes", "laptop", false);
  });

  test("is approved together with others", async () => {
    for (const device of ["desktop", "phone"]) await addDevice(stage, "ann", device);
    await go(page, stage, "/admin/nodes?tab=waiting");
    for (const device of ["desktop", "phone"]) await row(device).getByRole("checkbox").check();
    await page.getByRole("button", { name: "Approve nodes" }).click();
    await page.getByText("2 nodes approved").first().waitFor();
    for (const device of ["desktop", "phone"]) await waits("nodes", device, false);
  });

  test("does not wait if its pre-auth key is pre-approved", async () => {
    await go(page, stage, "/admin/keys?create=1");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("User", { exact: true }).selectOption("ann");
    await dialog.getByRole("checkbox", { name: "Pre-approved" }).check();
    await dialog.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("dialog", { name: "Your new pre-auth key" }).waitFor();
    interface Key {
      preApproved: boolean;
    }
    const keys = JSON.parse(await stage.cli("preauthkeys", "list", "--output", "json")) as Key[];
    expect(keys.map((key) => key.preApproved)).toEqual([true]);
    await go(page, stage, "/admin/keys?q=is:preapproved");
    await page.locator("tr[data-row]").getByText("Pre-approved").waitFor();
  });
});

describe("a user", () => {
  test("is suspended after a warning about what that means, and restored", async () => {
    await go(page, stage, "/admin/users");
    await act("ann", "Suspend");
    const dialog = page.getByRole("dialog", { name: "Suspend ann?" });
    await dialog.getByText("3 nodes are disconnected from the network.").waitFor();
    expect(await axe(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Suspend ann" }).click();
    await row("ann").getByText("Suspended").waitFor();
    await eventually(async () => expect((await listed("users", "ann"))?.suspendedAt).toBeTruthy());
    await go(page, stage, "/admin/users?q=is:suspended");
    await row("ann").getByRole("link", { name: "ann" }).first().click();
    await page.getByText("This user is suspended and has no access.").waitFor();
    expect(await axeInBothThemes(page)).toEqual([]);
    await page.getByRole("button", { name: "Restore", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Restore ann" }).click();
    await page.getByText("This user is suspended and has no access.").waitFor({ state: "detached" });
    await eventually(async () => expect((await listed("users", "ann"))?.suspendedAt).toBeUndefined());
  });

  test("who waits can be approved by an admin only, and suspended by an operator", async () => {
    await addDevice(stage, "bob", "tablet");
    const operator = await signedIn(stage, "/admin/requests", {}, await stage.key("--role", "operator"));
    allow(operator, /status of 403/, /favicon/);
    await operator.getByRole("button", { name: "Approve tablet" }).waitFor();
    await operator.getByRole("button", { name: "Delete bob" }).waitFor();
    expect(await operator.getByRole("button", { name: "Approve bob" }).count()).toBe(0);
    await closeWindow(operator);
    await go(page, stage, "/admin/users?q=is:unapproved");
    await row("bob").getByText("Needs approval").waitFor();
    await act("bob", "Approve");
    await page.getByRole("dialog").getByRole("button", { name: "Approve bob" }).click();
    await row("bob").waitFor({ state: "detached" });
    await waits("users", "bob", false);
  });
});

describe("several users", () => {
  const others = ["carl", "dora", "erik", "fay"];
  const all = async () => JSON.parse(await stage.cli("users", "list", "--output", "json")) as Waits[];

  test("who wait are approved together", async () => {
    for (const name of others) await addDevice(stage, name, `${name}-phone`);
    await go(page, stage, "/admin/requests");
    await page.getByRole("button", { name: "Approve all 4 users" }).focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Approve 4 users?" });
    for (const name of others) await dialog.getByText(`${name}@example.com`).waitFor();
    expect(await axe(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Approve 4 users" }).click();
    await page.getByText("4 users approved").first().waitFor();
    expect((await all()).filter((user) => user.needsApproval)).toEqual([]);
    await page.getByRole("list", { name: "Users waiting for approval" }).waitFor({ state: "detached" });
  });

  test("whom the provider no longer accepts keep access until somebody decides", async () => {
    for (const name of ["ann", "bob", ...others]) await fetch(`${stage.issuer}/test/disable/${name}`);
    const held = page.getByRole("list", { name: "Users whose suspension is held" });
    await eventually(async () => {
      const users = await all();
      expect(users.filter((user) => user.suspendedAt).length).toBe(3);
      expect(users.filter((user) => user.suspensionHeldAt).length).toBe(3);
    });
    await eventually(async () => expect(await held.getByRole("listitem").count()).toBe(3));
    const rail = page.getByRole("navigation").getByRole("link", { name: /^Requests/ });
    const nodes = await page.getByRole("list", { name: "Nodes waiting for approval" }).getByRole("listitem").count();
    await rail.filter({ hasText: String(nodes + 3) }).waitFor();
    expect(await axeInBothThemes(page)).toEqual([]);
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await axe(page)).toEqual([]);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(over, "horizontal overflow").toBeLessThanOrEqual(0);
    await page.setViewportSize({ width: 1440, height: 900 });
    await go(page, stage, "/admin/");
    await page.getByRole("link", { name: "Review: 3 suspensions" }).click();
    await held.waitFor();
  });

  test("are suspended or keep their access, one by one or together", async () => {
    const names = (await all()).filter((user) => user.suspensionHeldAt).map((user) => user.name);
    const [first = "", second = "", third = ""] = names;
    await go(page, stage, "/admin/users?q=is:held");
    await row(first).getByText("Suspension held").waitFor();
    await act(first, "Keep access");
    await page.getByRole("dialog").getByRole("button", { name: "Keep access" }).click();
    await row(first).waitFor({ state: "detached" });
    expect(await listed("users", first)).not.toHaveProperty("suspendedAt");
    await row(second).getByRole("link", { name: second }).first().click();
    await page.getByText("The identity provider no longer accepts this person.").waitFor();
    expect(await axeInBothThemes(page)).toEqual([]);
    await go(page, stage, "/admin/requests");
    await page.getByRole("button", { name: `Suspend ${second}` }).waitFor();
    await page.getByRole("button", { name: "Suspend all 2" }).click();
    const dialog = page.getByRole("dialog", { name: "Suspend 2 users?" });
    expect(await axe(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Suspend 2 users" }).click();
    await page.getByText("2 users suspended").first().waitFor();
    for (const name of [second, third]) expect((await listed("users", name))?.suspendedAt).toBeTruthy();
    await page.getByRole("list", { name: "Users whose suspension is held" }).waitFor({ state: "detached" });
  });
});
