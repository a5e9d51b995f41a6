import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { asStory, axe, closeWindow, eventually, everything, go, Stage, signedIn, watch, withBrowser } from "./rig";

withBrowser();
asStory();
let stage: Stage;
let page: Page;
let loads = 0;
const name = "harbour";

beforeAll(async () => {
  stage = await Stage.open();
  await stage.cli("users", "create", "ana");
  page = await signedIn(stage, "/admin/nodes");
  page.on("framenavigated", (frame) => {
    if (frame === page.mainFrame()) loads++;
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
  }[];
  return list.find((n) => n.givenName === of);
};

/** Makes a key in the dialogue and returns what it shows once. */
async function makeKey(): Promise<string> {
  await go(page, stage, "/admin/keys");
  await page.getByRole("button", { name: "Create key" }).first().click();
  const dialogue = page.getByRole("dialog");
  await dialogue.getByLabel("User", { exact: true }).selectOption("ana");
  await dialogue.getByLabel("Reusable").check();
  await dialogue.getByRole("button", { name: "Create key" }).click();
  const value = await page.getByRole("textbox", { name: "Your new pre-auth key" }).inputValue();
  expect(value).toMatch(/^flp_/);
  await page.getByLabel("I have stored it").check();
  await page.getByRole("dialog").getByRole("button", { name: "Close", exact: true }).last().click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await everything(page)).not.toContain(value.split("_").at(-1));
  return value;
}

describe("a device", () => {
  let key = "";

  test("joins, and the list shows it at once, without a reload", async () => {
    key = await makeKey();
    await go(page, stage, "/admin/nodes");
    await page.getByText("No nodes yet").waitFor();
    loads = 0;
    await stage.join(name, key, "--advertise-routes=10.44.0.0/16");
    await row(name).waitFor();
    await row(name).getByRole("img", { name: "Online" }).waitFor();
    await row(name).getByText("1 waiting").waitFor();
    expect(loads).toBe(0);
  });

  test("gets another name", async () => {
    await act(name, "Rename");
    await page.getByLabel("Name", { exact: true }).fill("Quay Side");
    await page.getByText("In DNS: quay-side").waitFor();
    expect(await axe(page)).toEqual([]);
    await page.getByRole("button", { name: "Rename", exact: true }).click();
    await page.getByText(`${name} is now quay-side.`).first().waitFor();
    await row("quay-side").waitFor();
    await eventually(async () => expect(await node("quay-side")).toBeDefined());
    await page.getByRole("button", { name: "Undo" }).click();
    await row(name).waitFor();
    await eventually(async () => expect(await node(name)).toBeDefined());
  });

  test("gets a tag, and leaves its user", async () => {
    await act(name, "Edit tags");
    await page.getByLabel("Tags", { exact: true }).fill("tag:pier");
    await page.getByText("With a tag the node no longer belongs to ana.").waitFor();
    await page.getByRole("button", { name: "Save tags" }).click();
    await row(name).getByText("pier").first().waitFor();
    await eventually(async () => expect((await node(name))?.tags).toEqual(["tag:pier"]));
  });

  test("has its route approved, and is told so", async () => {
    await act(name, "Approve routes");
    await page.getByRole("dialog").getByText("10.44.0.0/16").waitFor();
    expect(await axe(page)).toEqual([]);
    await page.getByRole("dialog").getByRole("button", { name: "Approve routes" }).click();
    await row(name).getByText("1 subnet").waitFor();
    await eventually(async () => expect((await node(name))?.approvedRoutes).toEqual(["10.44.0.0/16"]));
    await eventually(async () => {
      const status = JSON.parse((await stage.client(name, "status", "--json")).stdout);
      expect(status.Self.AllowedIPs).toContain("10.44.0.0/16");
    });
  });

  test("goes and comes back, and the list follows", async () => {
    await stage.client(name, "down");
    await row(name).getByRole("img", { name: "Offline" }).waitFor({ timeout: 30_000 });
    await stage.join(name, key, "--advertise-routes=10.44.0.0/16");
    await row(name).getByRole("img", { name: "Online" }).waitFor({ timeout: 30_000 });
    expect(loads).toBe(0);
  });

  test("is signed out", async () => {
    await act(name, "Expire key");
    await page.getByText("It stays listed, but must sign in again. Connections drop within seconds.").waitFor();
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
    await stage.join(name, key, "--advertise-routes=10.44.0.0/16", "--force-reauth");
    await eventually(async () => expect((await node(name))?.expired).toBe(false));
    await row(name).getByRole("img", { name: "Online" }).waitFor();
    expect(loads).toBe(0);
  });

  test("is deleted, with what it takes along named first", async () => {
    await act(name, "Delete");
    const dialogue = page.getByRole("dialog");
    await dialogue.getByText(/It leaves the network now and its address 100\.\S+ is freed\./).waitFor();
    await dialogue.getByText("10.44.0.0/16 will be unreachable").waitFor();
    expect(await axe(page)).toEqual([]);
    await dialogue.getByRole("button", { name: `Delete ${name}` }).click();
    await row(name).waitFor({ state: "detached" });
    expect(await node(name)).toBeUndefined();
    expect(loads).toBe(0);
  });

  test("left its key in no address", () => {
    expect(watch(page).requests.join("\n")).not.toContain("flp_");
  });
});
