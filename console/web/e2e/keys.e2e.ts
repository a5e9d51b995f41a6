import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  allow,
  axe,
  closeWindow,
  eventually,
  everything,
  go,
  hold,
  newWindow,
  parts,
  Stage,
  signedIn,
  signIn,
  withBrowser,
} from "./rig";

withBrowser();
let stage: Stage;
let page: Page;
beforeAll(async () => {
  stage = await Stage.open();
  await stage.cli("users", "create", "ana");
  page = await signedIn(stage, "/admin/keys");
});
afterAll(async () => {
  await closeWindow(page);
  await stage.close();
});

const dialog = () => page.getByRole("dialog");

/** Returns the secret that the dialog shows once, and checks that no trace of it is left afterwards. */
async function shownOnce(title: string): Promise<string> {
  const value = await page.getByRole("textbox", { name: title }).inputValue();
  expect(await axe(page)).toEqual([]);
  // Neither Escape nor a click outside closes the dialog before the secret is stored.
  await page.keyboard.press("Escape");
  await page.mouse.click(5, 5);
  await eventually(async () => expect(await page.getByRole("textbox", { name: title }).inputValue()).toBe(value));
  await page.getByLabel("I've saved this secret").check();
  await dialog().getByRole("button", { name: "Close", exact: true }).last().click();
  await dialog().waitFor({ state: "detached" });
  const { secret } = parts(value);
  expect(await everything(page)).not.toContain(secret);
  const { server, console, nginx } = await stage.logs();
  expect(server + console + nginx).not.toContain(secret);
  return value;
}

interface PreAuthKey {
  key: string;
  description: string;
  aclTags: string[];
  reusable: boolean;
  ephemeral: boolean;
  user: { name: string } | null;
  expiration: string;
}
const listed = async (key: string) => {
  const list = JSON.parse(await stage.cli("preauthkeys", "list", "--output", "json")) as PreAuthKey[];
  return list.find((k) => k.key.startsWith(parts(key).prefix));
};
const hoursLeft = (key?: PreAuthKey) => (Date.parse(key?.expiration ?? "") - Date.now()) / 3600e3;

describe("a pre-auth key", () => {
  const kinds = [
    { what: "for one device of a user", life: "1 hour", hours: 1, reusable: false, ephemeral: false, tags: "" },
    { what: "for many devices of a user", life: "24 hours", hours: 24, reusable: true, ephemeral: false, tags: "" },
    {
      what: "for ephemeral devices",
      life: "168 hours (7 days)",
      hours: 168,
      reusable: true,
      ephemeral: true,
      tags: "",
    },
    { what: "with tags", life: "Custom", hours: 72, reusable: false, ephemeral: false, tags: "tag:db tag:prod" },
  ];
  test.each(kinds)("$what is created, and shown once", async ({ life, hours, reusable, ephemeral, tags }) => {
    await go(page, stage, "/admin/keys");
    await page.getByRole("button", { name: "Create key" }).first().click();
    const description = tags && "Databases in Frankfurt";
    if (description) {
      await dialog().getByLabel("Description (optional)").fill("é".repeat(101));
      await dialog().getByText("Too long: the limit is 200 bytes.").waitFor();
      await dialog().getByLabel("Description (optional)").fill(description);
    }
    if (tags) {
      await dialog().getByRole("radio", { name: "Tags" }).check();
      await dialog().getByLabel("Tags", { exact: true }).last().fill(tags);
    } else await dialog().getByLabel("User", { exact: true }).selectOption("ana");
    await dialog().getByRole("radio", { name: life, exact: true }).check();
    if (life === "Custom") {
      await dialog().getByLabel("Number", { exact: true }).fill("3");
      await dialog().getByLabel("Unit", { exact: true }).selectOption("days");
    }
    if (reusable) await dialog().getByLabel("Reusable").check();
    if (ephemeral) await dialog().getByLabel("Ephemeral nodes").check();
    expect(await axe(page)).toEqual([]);
    await dialog().getByRole("button", { name: "Create key" }).click();
    const made = await listed(await shownOnce("Your new pre-auth key"));
    expect(made).toMatchObject({ description, reusable, ephemeral, aclTags: tags ? tags.split(" ") : [] });
    expect(made?.user?.name).toBe(tags ? undefined : "ana");
    expect(hoursLeft(made)).toBeGreaterThan(hours - 0.1);
    expect(hoursLeft(made)).toBeLessThanOrEqual(hours);
    if (!description) return;
    await page.getByLabel("Filter keys").fill("frankfurt");
    await page.getByRole("row").filter({ hasText: description }).waitFor();
    await eventually(async () => expect(await page.locator("tr[data-row]").count()).toBe(1));
  });

  test("that is being created is not lost by Esc or a click outside", async () => {
    await go(page, stage, "/admin/keys");
    await page.getByRole("button", { name: "Create key" }).first().click();
    await dialog().getByLabel("User", { exact: true }).selectOption("ana");
    const pass = await hold(page, "**/api/v1/preauthkey");
    await dialog().getByRole("button", { name: "Create key" }).click();
    await eventually(async () =>
      expect(await dialog().getByRole("button", { name: "Cancel" }).isDisabled()).toBe(true),
    );
    await page.keyboard.press("Escape");
    await page.mouse.click(5, 5);
    await pass();
    await shownOnce("Your new pre-auth key");
  });

  test("is expired after a confirmation that explains the effect", async () => {
    const key = await stage.cli("preauthkeys", "create", "--user", "ana");
    const { id } = parts(key);
    const row = page.locator("tr[data-row]", { hasText: id });
    await row.getByRole("button", { name: /^Actions for / }).click();
    await page.getByRole("menuitem", { name: "Expire" }).click();
    await dialog().getByText("New nodes can no longer join with this key.").waitFor();
    expect(await axe(page)).toEqual([]);
    await dialog().getByRole("button", { name: "Expire key" }).click();
    await row.waitFor({ state: "detached" });
    expect(hoursLeft(await listed(key))).toBeLessThanOrEqual(0);
  });
});

describe("an API key", () => {
  test.each(["Read", "Operator", "Admin"])("with the role %s is created, shown once, and can sign in", async (role) => {
    await go(page, stage, "/admin/settings/api-keys");
    await page.getByRole("button", { name: "Create API key" }).first().click();
    await dialog().getByLabel("Comment").fill(`for ${role}`);
    await dialog().getByRole("radio", { name: role }).check();
    await dialog().getByRole("radio", { name: "365 days" }).check();
    expect(await axe(page)).toEqual([]);
    await dialog().getByRole("button", { name: "Create API key" }).click();
    const key = await shownOnce("Your new API key");
    await page.locator("tr[data-row]", { hasText: `for ${role}` }).waitFor();
    const other = await newWindow(stage);
    await signIn(other, stage, key);
    await closeWindow(other);
  });

  test("that is revoked signs out another window within 15 seconds", async () => {
    const key = await stage.key();
    const other = await signedIn(stage, "/admin/nodes", {}, key);
    allow(other, /status of 401/);
    const { id } = parts(key);
    await page
      .locator("tr[data-row]", { hasText: id })
      .getByRole("button", { name: /^Actions for / })
      .click();
    await page.getByRole("menuitem", { name: "Revoke" }).click();
    await dialog().getByText("stop working immediately").waitFor();
    expect(await axe(page)).toEqual([]);
    const began = Date.now();
    await dialog().getByRole("button", { name: "Revoke key" }).click();
    await other.getByText("You were signed out because this key was revoked.").waitFor({ timeout: 15_000 });
    expect(Date.now() - began).toBeLessThan(15_000);
    await closeWindow(other);
  });

  test("is deleted together with others, except the session's own", async () => {
    for (const key of [await stage.key(), await stage.key()])
      await stage.cli("apikeys", "expire", "--prefix", parts(key).id);
    await go(page, stage, "/admin/settings/api-keys?tab=expired");
    const rows = page.locator("tr[data-row]");
    await eventually(async () => expect(await rows.count()).toBeGreaterThanOrEqual(2));
    const expired = await rows.count();
    await page.getByRole("checkbox", { name: "Select all" }).click();
    await page.getByRole("tab", { name: /^Usable/ }).click();
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    await page.getByRole("menuitemcheckbox", { name: /^Admin/ }).click();
    await page.keyboard.press("Escape");
    await eventually(async () => expect(await page.getByLabel("Filter API keys").inputValue()).toBe("role:admin"));
    await page.locator("tr[data-row]", { hasText: "This session" }).getByRole("checkbox").click();
    const bar = page.getByRole("toolbar");
    await bar.getByText(`${expired + 1} selected, ${expired} not shown`).waitFor();
    await bar.getByText("This session's key will be kept.").waitFor();
    await bar.getByRole("button", { name: "Delete" }).click();
    await dialog().getByText(`Delete ${expired} API keys?`).waitFor();
    await eventually(async () => expect(await dialog().getByText(parts(stage.admin).id).count()).toBe(0));
    expect(await axe(page)).toEqual([]);
    if (expired >= 5) await dialog().getByRole("textbox").fill(String(expired));
    await dialog()
      .getByRole("button", { name: `Delete ${expired} keys` })
      .click();
    await page.getByText(`${expired} API keys deleted`).first().waitFor();
    await page.getByRole("tab", { name: /^Expired/ }).click();
    await page.getByText("No matches").waitFor();
  });

  test("of the session is revoked only after its name is typed, and that signs out", async () => {
    const key = await stage.key();
    const own = await signedIn(stage, "/admin/settings/api-keys", {}, key);
    allow(own, /status of 401/);
    const { id } = parts(key);
    await own
      .locator("tr[data-row]", { hasText: id })
      .getByRole("button", { name: /^Actions for / })
      .click();
    await own.getByRole("menuitem", { name: "Revoke" }).click();
    await own.getByText("You will be signed out.").waitFor();
    const button = own.getByRole("dialog").getByRole("button", { name: "Revoke key" });
    expect(await button.isDisabled()).toBe(true);
    await own.getByRole("dialog").getByRole("textbox").fill(id);
    await button.click();
    await own.getByLabel("API key", { exact: true }).waitFor();
    await closeWindow(own);
  });
});
