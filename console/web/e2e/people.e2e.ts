import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Layer, ownLayers, sessionLayers } from "./layers";
import {
  allow,
  asStory,
  axe,
  axeInBothThemes,
  closeWindow,
  eventually,
  go,
  newTab,
  Stage,
  signedIn,
  watch,
  withBrowser,
} from "./rig";
import { addDevice, personIn } from "./signin";

withBrowser();
asStory();
let stage: Stage;
let page: Page;

beforeAll(async () => {
  stage = await Stage.open({ provider: true });
  for (const device of ["laptop", "phone"]) await addDevice(stage, "ann", device);
  await addDevice(stage, "bob", "server");
  page = await personIn(stage, "ann");
});
afterAll(async () => {
  await closeWindow(page);
  await stage.close();
});

interface Node {
  givenName: string;
}
const nodes = async () => JSON.parse(await stage.cli("nodes", "list", "--output", "json")) as Node[];
const device = (name: string) =>
  page.getByRole("list", { name: "My devices" }).getByRole("listitem").filter({ hasText: name });
const act = async (name: string, what: string) => {
  await device(name)
    .getByRole("button", { name: /^Actions for / })
    .click();
  await page.getByRole("menuitem", { name: what, exact: true }).click();
};

/** Checks that everyone can use a page and what opens on it. */
async function usable(page: Page, layers: Record<string, Layer>) {
  expect(await axeInBothThemes(page)).toEqual([]);
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(over, "horizontal overflow").toBeLessThanOrEqual(0);
  for (const [name, layer] of Object.entries(layers)) {
    await layer.open(page);
    const open = page.locator("[role=dialog], [role=menu]").last();
    await open.waitFor();
    expect(await axe(page), name).toEqual([]);
    await page.keyboard.press("Escape");
    await open.waitFor({ state: "detached" });
  }
}

describe("a member", () => {
  test("gets their own devices and nothing else, whichever page they open", async () => {
    for (const path of ["", "nodes", "policy"]) {
      await page.goto(stage.direct + path);
      await page.getByRole("heading", { level: 1, name: "My devices" }).waitFor();
      expect(page.url()).toBe(`${stage.direct}my`);
    }
    for (const name of ["laptop", "phone"])
      await device(name)
        .getByText(/^100\.64\./)
        .waitFor();
    expect(await page.getByText("server", { exact: true }).count()).toBe(0);
    expect(await page.getByRole("navigation").count()).toBe(0);
  });

  test.each([1440, 390])("can use the page in a window of %i px", async (width) => {
    await page.setViewportSize({ width, height: 844 });
    await usable(page, ownLayers);
  });

  test("renames a device with the keyboard alone", async () => {
    await device("laptop")
      .getByRole("button", { name: /^Actions for / })
      .focus();
    await page.keyboard.press("Enter");
    const rename = page.getByRole("menuitem", { name: "Rename" });
    await rename.waitFor();
    for (let moves = 0; moves < 6; moves++) {
      if (await rename.evaluate((item) => item === document.activeElement)) break;
      await page.keyboard.press("ArrowDown");
    }
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByLabel("Name").fill("work-laptop");
    await page.keyboard.press("Enter");
    await device("work-laptop").waitFor();
    await eventually(async () => expect((await nodes()).map((n) => n.givenName)).toContain("work-laptop"));
  });

  test("sees what a device can reach", async () => {
    await act("work-laptop", "Show access");
    const dialog = page.getByRole("dialog", { name: "What work-laptop can reach" });
    await dialog.getByRole("rowheader", { name: "server" }).waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  });

  test("creates a pre-auth key for a few hours, and expires it", async () => {
    await page.getByRole("button", { name: "Create pre-auth key" }).click();
    const dialog = page.getByRole("dialog");
    expect(await dialog.getByText("Pre-approved").count()).toBe(0);
    await dialog.getByRole("radio", { name: "12 hours" }).check();
    expect(await axe(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Create key" }).click();
    const made = page.getByRole("dialog", { name: "Your new pre-auth key" });
    await made.getByText(/--auth-key/).waitFor();
    await made.getByRole("checkbox").check();
    await made.getByRole("button", { name: "Close", exact: true }).last().click();
    await page.getByRole("button", { name: /^Expire / }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Expire key" }).click();
    await page.getByText("You have no usable pre-auth keys.").waitFor();
  });

  test("signs a device out, and deletes it", async () => {
    await act("phone", "Sign out device");
    await page.getByRole("dialog").getByRole("button", { name: "Expire key" }).click();
    await device("phone").getByText("Sign in again").waitFor();
    await act("phone", "Delete");
    await page.getByRole("dialog").getByRole("button", { name: "Delete phone" }).click();
    await device("phone").waitFor({ state: "detached" });
    await eventually(async () =>
      expect((await nodes()).map((n) => n.givenName).sort()).toEqual(["server", "work-laptop"]),
    );
  });
});

test("an administrator has a page of their own devices, too", async () => {
  await stage.cli("users", "set-role", "bob", "admin");
  const bob = await personIn(stage, "bob");
  await bob.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await bob.getByRole("button", { name: /Signed in as/ }).click();
  await bob.getByRole("menuitem", { name: "My devices" }).click();
  const list = bob.getByRole("list", { name: "My devices" });
  await list.getByText("server", { exact: true }).waitFor();
  expect(await list.getByRole("listitem").count()).toBe(1);
  await closeWindow(bob);
});

describe("the role of a person", () => {
  let admin: Page;
  const role = async (name: string) => {
    interface User {
      name: string;
      role?: string;
      assignedRole?: string;
    }
    const all = JSON.parse(await stage.cli("users", "list", "--output", "json")) as User[];
    const user = all.find((each) => each.name === name);
    return [user?.role, user?.assignedRole];
  };
  const change = async (name: string, to: string) => {
    await admin.getByRole("button", { name: `Actions for ${name}`, exact: true }).click();
    await admin.getByRole("menuitem", { name: "Change role" }).click();
    const dialog = admin.getByRole("dialog", { name: `Change the role of ${name}` });
    await dialog.getByRole("radio", { name: to, exact: true }).check();
    await dialog.getByRole("button", { name: "Change role" }).focus();
    await admin.keyboard.press("Enter");
    return dialog;
  };
  const row = (name: string) => admin.locator("tr[data-row]").filter({ hasText: name });
  beforeAll(async () => {
    admin = await signedIn(stage, "/admin/users");
    allow(admin, /favicon/, /status of 409/);
    await page.goto("about:blank"); // ann's page would follow her role
  });
  afterAll(async () => {
    await closeWindow(admin);
    await page.goto(stage.direct);
  });

  test("decides what their open page shows, also when it changes", async () => {
    await stage.cli("users", "set-role", "ann", "read");
    const ann = await newTab(stage, page.context());
    allow(ann, /favicon/, /status of 403/); // what the page requests before it notices the change
    await eventually(async () => {
      await ann.goto(stage.direct); // the console asks for the role of a person every few seconds
      expect(await ann.locator("main h1").first().textContent({ timeout: 5000 })).toBe("Overview");
    });
    await stage.cli("users", "set-role", "ann", "default");
    await ann.getByRole("list", { name: "My devices" }).waitFor();
    watch(ann).requests = [];
    await ann.waitForTimeout(2000);
    expect(watch(ann).requests.filter((url) => url.includes("/api/v1/events"))).toEqual([]);
    await ann.close();
  });

  test("is assigned in the list of users, and says where it comes from", async () => {
    await row("ann").getByText("Member", { exact: true }).waitFor();
    await (await change("ann", "Operator")).waitFor({ state: "detached" });
    await row("ann").getByText("Operator", { exact: true }).waitFor();
    expect(await role("ann")).toEqual(["operator", "operator"]);
    await row("ann").getByRole("link", { name: "ann" }).first().click();
    await admin.getByText("Operator, assigned by an administrator", { exact: true }).waitFor();
    expect(await axeInBothThemes(admin)).toEqual([]);
    await (await change("ann", "Default")).waitFor({ state: "detached" });
    await admin.getByText("Member, by default", { exact: true }).waitFor();
    expect(await role("ann")).toEqual(["member", undefined]);
  });

  test("follows a change by somebody else", async () => {
    await stage.cli("users", "set-role", "ann", "read");
    await admin.getByText("Read-only, assigned by an administrator", { exact: true }).waitFor();
    await stage.cli("users", "set-role", "ann", "default");
    await admin.getByText("Member, by default", { exact: true }).waitFor();
  });

  test("stays if it is that of the last administrator, with the server's reason", async () => {
    await go(admin, stage, "/admin/users?q=role:admin");
    const dialog = await change("bob", "Member");
    await dialog
      .getByRole("alert")
      .getByText(/last administrator/)
      .waitFor();
    expect(await axe(admin)).toEqual([]);
    await admin.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    expect(await role("bob")).toEqual(["admin", "admin"]);
  });

  test("is not offered to operators", async () => {
    const operator = await signedIn(stage, "/admin/users", {}, await stage.key("--role", "operator"));
    allow(operator, /favicon/, /status of 403/);
    await operator.getByRole("button", { name: "Actions for ann", exact: true }).click();
    await operator.getByRole("menuitem", { name: "Suspend" }).waitFor();
    for (const name of ["Change role", "Invite with a passkey"])
      expect(await operator.getByRole("menuitem", { name }).count()).toBe(0);
    await closeWindow(operator);
  });
});

describe("the sessions of everyone", () => {
  let admin: Page;
  const session = (name: string) => admin.locator("tr[data-row]").filter({ hasText: name });
  beforeAll(async () => {
    admin = await signedIn(stage, "/admin/settings/sessions");
    allow(admin, /favicon/);
  });
  afterAll(() => closeWindow(admin));

  test("are listed for an admin", async () => {
    await session("ann").getByText("Console").waitFor();
    await session("bob").getByText("Console").waitFor();
    for (const width of [1440, 390]) {
      await admin.setViewportSize({ width, height: 844 });
      await usable(admin, sessionLayers);
    }
    await admin.setViewportSize({ width: 1440, height: 844 });
  });

  test("are revoked with the keyboard alone, which signs the person out", async () => {
    await admin.getByLabel("Filter sessions").fill("user:ann");
    await session("bob").waitFor({ state: "detached" });
    await session("ann")
      .getByRole("button", { name: /^Actions for ann/ })
      .focus();
    await admin.keyboard.press("Enter");
    const revoke = admin.getByRole("menuitem", { name: "Revoke" });
    await revoke.waitFor();
    await admin.keyboard.press("End");
    await eventually(async () => expect(await revoke.evaluate((e) => e === document.activeElement)).toBe(true));
    await admin.keyboard.press("Enter");
    const dialog = admin.getByRole("dialog");
    await dialog.waitFor();
    await dialog.getByRole("button", { name: "Revoke session" }).focus();
    await admin.keyboard.press("Enter");
    await session("ann").waitFor({ state: "detached" });
    allow(page, /status of 401/);
    await page.reload().catch(() => undefined); // the page may be on its way to the login, which aborts the reload
    await page.getByRole("link", { name: "Sign in with Example ID" }).waitFor();
  });

  test("are hidden from others", async () => {
    const reader = await signedIn(stage, "/admin/settings/sessions", {}, await stage.key("--role", "read"));
    allow(reader, /favicon/);
    await reader.getByText("Only admins can see the sessions of other people.").waitFor();
    await closeWindow(reader);
  });
});

test("an API key has no devices", async () => {
  const key = await signedIn(stage, "/admin/my");
  allow(key, /favicon/);
  await key.getByRole("heading", { name: "No devices of your own" }).waitFor();
  await closeWindow(key);
});
