import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allow, asStory, axe, closeWindow, eventually, Stage, signedIn, withBrowser } from "./rig";

withBrowser();
asStory();
let stage: Stage;
let page: Page;

beforeAll(async () => {
  stage = await Stage.open({ nodes: 4 });
  page = await signedIn(stage, "/admin/requests");
});
afterAll(async () => {
  await closeWindow(page);
  await stage.close();
});

interface Waiting {
  hostname: string;
  code: string;
}
const waiting = async () => JSON.parse(await stage.cli("auth", "list", "--output", "json")) as Waiting[];
const answer = (what: "Approve" | "Reject", name: string) =>
  page.getByRole("button", { name: `${what} ${name}`, exact: true });

describe("waiting devices", () => {
  const letIn = "new-laptop";
  const turnedAway = "unknown-phone";

  test("are listed with their codes, and counted in the navigation", async () => {
    await page.getByText("No pending requests").waitFor();
    expect(await axe(page)).toEqual([]);
    for (const name of [letIn, turnedAway]) await stage.knock(name);
    for (const name of [letIn, turnedAway]) await answer("Approve", name).waitFor();
    for (const { code } of await waiting()) await page.getByText(code, { exact: true }).waitFor();
    const rail = page.getByRole("navigation").getByRole("link", { name: /^Requests/ });
    await eventually(async () => expect(await rail.innerText()).toMatch(/\b2\b/));
    expect(await axe(page)).toEqual([]);
  });

  test("are approved for a chosen owner", async () => {
    await answer("Approve", letIn).click();
    const dialog = page.getByRole("dialog");
    const submit = dialog.getByRole("button", { name: `Approve ${letIn}` });
    await submit.click();
    await dialog.getByText("Choose an owner.").waitFor();
    await dialog.getByLabel("Owner").selectOption("ana");
    expect(await axe(page)).toEqual([]);
    await submit.click();
    await page
      .getByText(new RegExp(`Approved ${letIn} for ana|Approved ${letIn}\\.`))
      .first()
      .waitFor();
    await answer("Approve", letIn).waitFor({ state: "detached" });
    await eventually(async () => expect(await stage.cli("nodes", "list", "--user", "ana")).toContain(letIn));
  });

  test("are rejected with a reason", async () => {
    await answer("Reject", turnedAway).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Reason (optional)").fill("ask the network team first");
    expect(await axe(page)).toEqual([]);
    await dialog.getByRole("button", { name: `Reject ${turnedAway}` }).click();
    await page.getByText("No pending requests").waitFor();
    expect(await waiting()).toEqual([]);
    expect(await axe(page)).toEqual([]);
  });

  test("that are not waiting cause an error with a request ID", async () => {
    await page.getByRole("button", { name: "Approve by code" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Code or link").fill("AAAA-BBBB");
    await dialog.getByLabel("Owner").selectOption("ana");
    allow(page, /status of 404/);
    await dialog.getByRole("button", { name: "Approve device" }).click();
    await dialog.getByRole("alert").getByText("no device is waiting with the code AAAA-BBBB").waitFor();
    await dialog
      .getByRole("alert")
      .getByText(/^Request ID: \S+/)
      .waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  });
});

describe("waiting SSH sessions", () => {
  let from = "";
  let to = "";

  beforeAll(async () => {
    const policy = JSON.stringify({
      acls: [{ action: "accept", src: ["*"], dst: ["*:*"] }],
      tagOwners: { "tag:shell": [] },
      ssh: [
        {
          action: "check",
          src: ["autogroup:member", "autogroup:tagged"],
          dst: ["tag:shell"],
          users: ["root", "ubuntu"],
        },
      ],
    });
    const nodes = JSON.parse(await stage.cli("nodes", "list", "--output", "json")) as {
      givenName: string;
      online: boolean;
    }[];
    [from = "", to = ""] = nodes
      .filter((node) => node.online && node.givenName !== "new-laptop")
      .map((n) => n.givenName);
    const answer = await fetch(`${stage.server}/api/v1/policy`, {
      method: "PUT",
      headers: { Authorization: `Bearer ${stage.admin}`, "Content-Type": "application/json" },
      body: JSON.stringify({ policy, force: true }),
    });
    expect(answer.status, await answer.text()).toBe(200);
    await stage.cli("nodes", "tag", to, "--tags", "tag:shell");
  });

  test.each([
    { what: "start when they are approved", user: "root", verb: "Approve", submit: "Approve session", begins: true },
    {
      what: "do not start when they are rejected",
      user: "ubuntu",
      verb: "Reject",
      submit: "Reject session",
      begins: false,
    },
  ])("$what", async ({ user, verb, submit, begins }) => {
    const [answer] = await Promise.all([
      stage.session(from, to, user),
      (async () => {
        await page.getByRole("button", { name: `${verb} the session from ${from} to ${to}` }).click();
        expect(await axe(page)).toEqual([]);
        await page.getByRole("dialog").getByRole("button", { name: submit }).click();
      })(),
    ]);
    expect(answer).toEqual({ begins });
    await page.getByText("No pending requests").waitFor();
  });
});

test("a read-only key cannot approve or reject", async () => {
  const reader = await signedIn(stage, "/admin/requests", {}, await stage.key("--role", "read"));
  await reader.getByRole("heading", { level: 1, name: "Requests" }).waitFor();
  await eventually(async () => expect(await reader.getByRole("button", { name: "Approve by code" }).count()).toBe(0));
  await closeWindow(reader);
});
