import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { asStory, axe, closeWindow, eventually, Stage, signedIn, withBrowser } from "./rig";

withBrowser();
asStory();
let stage: Stage;
let page: Page;
const subnet = "10.55.0.0/16";

beforeAll(async () => {
  stage = await Stage.open();
  await stage.cli("users", "create", "ana");
  const key = (await stage.cli("preauthkeys", "create", "--user", "ana", "--expiration", "1h")).trim();
  page = await signedIn(stage, "/admin/routes");
  await page.getByText("No subnet routes yet").waitFor();
  await stage.join("gate", key, `--advertise-routes=${subnet}`, "--advertise-exit-node");
});
afterAll(async () => {
  await closeWindow(page);
  await stage.close();
});

const approve = (what: string) => page.getByRole("switch", { name: `Approve ${what} through gate` });
const row = (of: string) => page.locator("tr[data-row]", { hasText: of });

/** What the client itself was told that it serves. */
const serves = async () => {
  const status = JSON.parse((await stage.client("gate", "status", "--json")).stdout) as {
    Self: { AllowedIPs: string[] };
  };
  return status.Self.AllowedIPs;
};

describe("a route", () => {
  test("that a device offers is there at once, and waits", async () => {
    await row(subnet).getByText("Waiting").first().waitFor();
    expect(await approve(subnet).isChecked()).toBe(false);
    expect(await axe(page)).toEqual([]);
  });

  test("is approved by its switch, and the device serves it", async () => {
    await approve(subnet).click();
    await row(subnet).getByText("In service").waitFor();
    await eventually(async () => expect(await serves()).toContain(subnet));
  });

  test("is disabled by who was told what is lost", async () => {
    await approve(subnet).click();
    const dialogue = page.getByRole("dialog");
    await dialogue.getByText(`No other router serves ${subnet}`).waitFor();
    expect(await axe(page)).toEqual([]);
    await dialogue.getByRole("button", { name: "Disable route" }).click();
    await row(subnet).getByText("Waiting").first().waitFor();
    await eventually(async () => expect(await serves()).not.toContain(subnet));
  });

  test("to the internet is one switch for both families", async () => {
    await page.getByRole("tab", { name: "Exit nodes" }).click();
    await approve("the internet").click();
    await row("gate").getByText("In service").waitFor();
    expect(await axe(page)).toEqual([]);
    await eventually(async () => expect(await serves()).toEqual(expect.arrayContaining(["0.0.0.0/0", "::/0"])));
  });
});
