import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allow, asStory, axe, closeWindow, eventually, go, hold, Stage, signedIn, withBrowser } from "./rig";

withBrowser();
asStory();
let stage: Stage;
let page: Page;
const subnet = "10.55.0.0/16";
const [wide, narrow] = ["10.60.0.0/15", "10.61.0.0/24"];

beforeAll(async () => {
  stage = await Stage.open();
  await stage.cli("users", "create", "ana");
  const key = (await stage.cli("preauthkeys", "create", "--user", "ana", "--reusable", "--expiration", "1h")).trim();
  page = await signedIn(stage, "/admin/routes");
  await page.getByText("No subnet routes yet").waitFor();
  await page.getByRole("button", { name: "Copy command" }).waitFor();
  await stage.join("gate", key, `--advertise-routes=${subnet}`, "--advertise-exit-node");
  await stage.join("pier", key, `--advertise-routes=${wide},${narrow}`);
});
afterAll(async () => {
  await closeWindow(page);
  await stage.close();
});

const approve = (what: string) => page.getByRole("switch", { name: `Approve ${what} through gate` });
const row = (of: string) => page.locator("tr[data-row]", { hasText: of });

/** The routes that the server told the client to serve. */
const serves = async () => {
  const status = JSON.parse((await stage.client("gate", "status", "--json")).stdout) as {
    Self: { AllowedIPs: string[] };
  };
  return status.Self.AllowedIPs;
};

describe("a route", () => {
  test("that a device advertises appears at once as pending", async () => {
    await row(subnet).getByText("Pending").first().waitFor();
    expect(await approve(subnet).isChecked()).toBe(false);
    expect(await axe(page)).toEqual([]);
  });

  test("is approved by its switch, and the device serves it", async () => {
    await approve(subnet).click();
    await row(subnet).getByText("Active").waitFor();
    await eventually(async () => expect(await serves()).toContain(subnet));
  });

  test("is disabled after a confirmation that names what is lost", async () => {
    await approve(subnet).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText(`No other router serves ${subnet}. 1 node loses access immediately: pier.`).waitFor();
    expect(await axe(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Disable route" }).click();
    await row(subnet).getByText("Pending").first().waitFor();
    await eventually(async () => expect(await serves()).not.toContain(subnet));
  });

  test("to the internet has one switch for IPv4 and IPv6", async () => {
    await page.getByRole("tab", { name: "Exit nodes" }).click();
    await approve("internet traffic").click();
    await row("gate").getByText("Active").waitFor();
    expect(await axe(page)).toEqual([]);
    await eventually(async () => expect(await serves()).toEqual(expect.arrayContaining(["0.0.0.0/0", "::/0"])));
  });

  test("to the internet shows how many nodes may use it", async () => {
    await row("gate").getByText("1 node", { exact: true }).waitFor();
    await row("gate").getByRole("link", { name: "gate" }).click();
    await page.getByText("1 node can use this exit node.").waitFor();
    expect(await axe(page)).toEqual([]);
    await page.keyboard.press("Escape");
  });
});

const dialog = () => page.getByRole("dialog");
const through = (what: string, node: string) => page.getByRole("switch", { name: `Approve ${what} through ${node}` });
const approved = async (node: string) => {
  const nodes = JSON.parse(await stage.cli("nodes", "list", "--output", "json")) as {
    givenName: string;
    approvedRoutes: string[];
  }[];
  return nodes.find((each) => each.givenName === node)?.approvedRoutes.toSorted();
};

describe("several routes", () => {
  test("are listed before they are approved, with the traffic that they redirect", async () => {
    await page.getByRole("tab", { name: "Subnets" }).click();
    await page.getByRole("button", { name: "Approve all pending (3)" }).click();
    await dialog().getByText(`Overlaps ${wide}`).waitFor();
    await dialog().getByText(`Overlaps ${narrow}`).waitFor();
    await dialog().getByRole("button", { name: "Show as API call" }).click();
    await eventually(async () =>
      expect(await dialog().getByText("/approve_routes'").textContent()).toMatch(/curl .*\ncurl /),
    );
    expect(await axe(page)).toEqual([]);
  });

  test("are approved, and that is undone", async () => {
    await dialog().getByRole("button", { name: "Approve 3 routes" }).click();
    await page.getByText("3 routes approved").first().waitFor();
    await eventually(async () => expect(await approved("pier")).toEqual([wide, narrow]));
    await page.getByRole("button", { name: "Undo" }).last().click();
    await page.getByText("3 route changes undone").first().waitFor();
    await eventually(async () => expect(await approved("pier")).toEqual([]));
  });

  test("that fail are named, and only they are retried", async () => {
    allow(page, /status of 50[02]/);
    const id = (
      JSON.parse(await stage.cli("nodes", "list", "--output", "json")) as { id: string; givenName: string }[]
    ).find((node) => node.givenName === "pier")?.id;
    await stage.faults({ method: "POST", path: `/api/v1/node/${id}/approve_routes`, status: 500, times: 1 });
    await page.getByRole("button", { name: "Approve all pending (3)" }).click();
    await dialog().getByRole("button", { name: "Approve 3 routes" }).click();
    await page.getByText("Couldn't change 2 of 3 routes").first().waitFor();
    await page
      .getByText(new RegExp(`${wide}, pier: .* · ${narrow}, pier: `))
      .first()
      .waitFor();
    expect(await approved("pier")).toEqual([]);
    await page.getByRole("button", { name: "Retry failed (2)" }).click();
    await eventually(async () => expect(await approved("pier")).toEqual([wide, narrow]));
  });

  test("are selected and disabled, with the effect of each", async () => {
    for (const what of [subnet, narrow]) await page.getByRole("checkbox", { name: `Select ${what}` }).click();
    await page.getByRole("toolbar").getByRole("button", { name: "Disable" }).click();
    await dialog()
      .getByText(/1 node loses access immediately: pier\./)
      .waitFor();
    await dialog().getByText(`Its traffic will use ${wide} through pier instead.`).waitFor();
    expect(await axe(page)).toEqual([]);
    await dialog().getByRole("button", { name: "Disable 2 routes" }).click();
    await page.getByText("2 routes disabled").first().waitFor();
    await eventually(async () => expect(await approved("pier")).toEqual([wide]));
  });
});

describe("a confirmation", () => {
  test("stays open when an earlier request ends late", async () => {
    await through(narrow, "pier").click();
    await dialog().getByRole("button", { name: "Approve route", exact: true }).click();
    await eventually(async () => expect(await approved("pier")).toEqual([wide, narrow]));
    const pass = await hold(page, "**/approve_routes");
    await through(narrow, "pier").click();
    await dialog().getByRole("button", { name: "Disable route" }).click();
    await dialog().waitFor({ state: "detached" });
    await through(wide, "pier").click();
    await dialog().getByText(`No other router serves ${wide}.`).waitFor();
    await pass();
    await page.getByText(`${narrow} disabled on pier`).last().waitFor();
    await eventually(async () => expect(await dialog().count()).toBe(1));
    await page.keyboard.press("Escape");
    await eventually(async () => expect(await approved("pier")).toEqual([wide]));
  });
});

test("the filter menu inserts terms that find a route", async () => {
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await page.getByRole("menuitem", { name: "Router" }).click();
  await page.getByRole("menuitemcheckbox", { name: "node:pier" }).click();
  await eventually(async () => expect(await page.getByLabel("Filter routes").inputValue()).toBe("node:pier"));
  await page.getByText(subnet).waitFor({ state: "detached" });
  expect(await axe(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
});

describe("the same confirmation", () => {
  test("appears on the page of a node", async () => {
    await go(page, stage, "/admin/nodes?q=pier");
    await page.locator("tr[data-row]").getByRole("link", { name: "pier" }).click();
    await page.getByRole("tab", { name: /^Routes/ }).click();
    await page.getByRole("switch", { name: `Approve ${narrow}` }).click();
    await dialog().getByText(`This route overlaps ${wide}, already in use`).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("switch", { name: `Approve ${wide}` }).click();
    await dialog().getByText(`No other router serves ${wide}.`).waitFor();
    await dialog().getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Show as API call" }).click();
    await page.getByText(`Disable ${wide}`).waitFor();
    expect(await axe(page)).toEqual([]);
  });

  test("appears when routes are approved in the list of nodes", async () => {
    await go(page, stage, "/admin/nodes?q=pier");
    await page.locator("tr[data-row]").getByRole("checkbox").click();
    await page.getByRole("toolbar").getByRole("button", { name: "Approve routes" }).click();
    await dialog().getByText(`This route overlaps ${wide}, already in use`).waitFor();
    await dialog().getByRole("button", { name: "Approve route", exact: true }).click();
    await eventually(async () => expect(await approved("pier")).toEqual([wide, narrow]));
  });

  test("and the API calls are in the panel of a route", async () => {
    await go(page, stage, "/admin/routes");
    await page.getByRole("link", { name: wide, exact: true }).first().click();
    await page.getByRole("button", { name: "Show as API call" }).click();
    await page.getByText(`Disable ${wide} through pier`).waitFor();
    expect(await through(wide, "pier").first().isChecked()).toBe(true);
    expect(await axe(page)).toEqual([]);
  });
});
