import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  asStory,
  axe,
  closeWindow,
  eventually,
  everything,
  go,
  parts,
  Stage,
  signedIn,
  watch,
  withBrowser,
} from "./rig";

withBrowser();
asStory();
let stage: Stage;
let page: Page;
let loads = 0;
const name = "harbour";
const route = "--advertise-routes=10.44.0.0/16";

beforeAll(async () => {
  stage = await Stage.open();
  page = await signedIn(stage, "/admin/nodes");
  page.on("request", (request) => {
    if (request.isNavigationRequest()) loads++;
  });
});
afterAll(async () => {
  await closeWindow(page);
  await stage.close();
});

const row = (of: string) => page.locator("tr[data-row]", { hasText: of });
const act = async (of: string, what: string) => {
  await row(of)
    .getByRole("button", { name: `Actions for ${of}` })
    .click();
  await page.getByRole("menuitem", { name: what }).click();
};
const node = async (of: string) => {
  const list = JSON.parse(await stage.cli("nodes", "list", "--output", "json")) as {
    givenName: string;
    tags: string[];
    approvedRoutes: string[];
    expired: boolean;
    note?: { text: string };
  }[];
  return list.find((n) => n.givenName === of);
};

describe("a device", () => {
  let key = "";

  test("is added with a key and a command, and the page shows when it joins", async () => {
    await go(page, stage, "/admin/nodes");
    await page.getByText("No nodes yet").waitFor();
    await page.getByRole("link", { name: "Add device" }).first().click();
    await page.getByRole("heading", { name: "Add device", level: 1 }).waitFor();
    loads = 0;
    await page.getByRole("radio", { name: /^Many servers or CI/ }).check();
    await page.getByLabel("Tags", { exact: true }).fill("tag:pier");
    expect(await axe(page)).toEqual([]);
    await page.getByRole("button", { name: "Create key" }).click();
    key = await page.getByRole("textbox", { name: "Pre-auth key" }).inputValue();
    expect(key).toMatch(/^flp_/);
    const command = (await page.locator("code", { hasText: "tailscale up" }).textContent()) ?? "";
    expect(command).toContain(`--login-server=${stage.server}`);
    expect(command).toContain(`--auth-key=${key}`);
    await page.getByText("Devices that join with this key appear here automatically.").waitFor();
    await stage.join(name, key, route);
    await page.getByRole("heading", { name: `${name} joined` }).waitFor();
    expect(await axe(page)).toEqual([]);
    await page.getByRole("link", { name: `Open ${name}` }).click();
    await page.getByRole("heading", { name, level: 1 }).waitFor();
    expect(await everything(page)).not.toContain(parts(key).secret);
  });

  test("gets a note with author and time, which can be removed", async () => {
    await page.getByRole("button", { name: "Add note" }).click();
    const field = page.getByLabel("Note for administrators");
    await field.fill("x".repeat(1001));
    await page.getByText("1 character too long").waitFor();
    expect(await page.getByRole("button", { name: "Save note" }).isDisabled()).toBe(true);
    await field.fill("Pier 7,\nsecond rack.");
    expect(await axe(page, "section:has(form)")).toEqual([]);
    await page.getByRole("button", { name: "Save note" }).click();
    const section = page.getByRole("region", { name: "Note" });
    await section.getByText(/^Pier 7,\nsecond rack\.$/).waitFor();
    await section.getByText(/^API key .+ · /).waitFor();
    expect(await axe(page, "section:has(> p.whitespace-pre-wrap)")).toEqual([]);
    await eventually(async () => expect((await node(name))?.note?.text).toBe("Pier 7,\nsecond rack."));
    await stage.cli("nodes", "note", name, "Pier 8.");
    await section.getByText("Pier 8.").waitFor();
    await section.getByRole("button", { name: "Edit note" }).click();
    await page.getByRole("button", { name: "Remove note" }).click();
    await section.getByText("No note yet.").waitFor();
    await eventually(async () => expect((await node(name))?.note).toBeUndefined());
    const dismiss = page.getByRole("button", { name: "Dismiss" });
    while ((await dismiss.count()) > 0) await dismiss.first().click();
  });

  test("appears in the list at once, online and with a pending route", async () => {
    await page
      .getByRole("navigation")
      .getByRole("link", { name: /^Nodes/ })
      .first()
      .click();
    await row(name).getByRole("img", { name: "Online" }).waitFor();
    await row(name).getByText("1 pending").waitFor();
  });

  test("is renamed", async () => {
    await act(name, "Rename");
    await page.getByLabel("Name", { exact: true }).fill("Quay Side");
    await page.getByText("DNS name: quay-side").waitFor();
    expect(await axe(page)).toEqual([]);
    await page.getByRole("button", { name: "Rename", exact: true }).click();
    await page.getByText(`${name} renamed to quay-side`).first().waitFor();
    await row("quay-side").waitFor();
    await eventually(async () => expect(await node("quay-side")).toBeDefined());
    await page.getByRole("button", { name: "Undo" }).click();
    await row(name).waitFor();
    await eventually(async () => expect(await node(name)).toBeDefined());
  });

  test("is tagged", async () => {
    await act(name, "Edit tags");
    await page.getByLabel("Tags", { exact: true }).fill("tag:pier tag:crane");
    await page.getByRole("button", { name: "Save tags" }).click();
    await row(name).getByText("crane").first().waitFor();
    await eventually(async () => expect((await node(name))?.tags).toEqual(["tag:crane", "tag:pier"]));
  });

  test("has its route approved, and receives the change", async () => {
    await act(name, "Approve routes");
    await page.getByText(`10.44.0.0/16 approved on ${name}`).first().waitFor();
    await row(name).getByText("1 subnet").waitFor();
    await eventually(async () => expect((await node(name))?.approvedRoutes).toEqual(["10.44.0.0/16"]));
    await eventually(async () => {
      const status = JSON.parse((await stage.client(name, "status", "--json")).stdout);
      expect(status.Self.AllowedIPs).toContain("10.44.0.0/16");
    });
  });

  test("goes offline and comes back, and the list shows it", async () => {
    await stage.client(name, "down");
    await row(name).getByRole("img", { name: "Offline" }).waitFor({ timeout: 30_000 });
    await stage.join(name, key, route);
    await row(name).getByRole("img", { name: "Online" }).waitFor({ timeout: 30_000 });
    expect(loads).toBe(0);
  });

  test("is signed out", async () => {
    await act(name, "Expire key");
    await page
      .getByText("The node stays listed but must sign in again. Its connections drop within seconds.")
      .waitFor();
    await page.getByRole("button", { name: "Expire key" }).click();
    await row(name)
      .getByText(/Expired/)
      .first()
      .waitFor();
    await eventually(async () => {
      const status = JSON.parse((await stage.client(name, "status", "--json")).stdout);
      expect(status.BackendState).toBe("NeedsLogin");
    }, 30_000);
  });

  test("joins again with its key", async () => {
    await stage.join(name, key, route, "--force-reauth");
    await eventually(async () => expect((await node(name))?.expired).toBe(false));
    await row(name).getByRole("img", { name: "Online" }).waitFor();
    expect(loads).toBe(0);
  });

  test("is deleted after a confirmation that names what is lost", async () => {
    await act(name, "Delete");
    const dialog = page.getByRole("dialog");
    await dialog.getByText(/The node leaves the network immediately, and its address 100\.\S+ is released\./).waitFor();
    await dialog.getByText("10.44.0.0/16 will be unreachable").waitFor();
    expect(await axe(page)).toEqual([]);
    await dialog.getByRole("button", { name: `Delete ${name}` }).click();
    await row(name).waitFor({ state: "detached" });
    expect(await node(name)).toBeUndefined();
    expect(loads).toBe(0);
  });

  test("never has its key in a URL", () => {
    expect(watch(page).requests.join("\n")).not.toContain("flp_");
  });
});
