import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allow, asStory, axe, closeWindow, eventually, go, newTab, Stage, signedIn, withBrowser } from "./rig";

withBrowser();
asStory();
let stage: Stage;
let page: Page;

/** Returns a policy with these rules: anaOnly gives Ana access to the server, bobToo gives it to Bob. */
const policy = (...rules: string[]) =>
  ["{", '  "tagOwners": {"tag:pier": []},', '  "acls": [', ...rules.map((r) => `    ${r},`), "  ],", "}", ""].join(
    "\n",
  );
const anaOnly = '{"action": "accept", "src": ["ana"], "dst": ["tag:pier:*"]}';
const bobToo = '{"action": "accept", "src": ["bob"], "dst": ["tag:pier:*"]}';

beforeAll(async () => {
  stage = await Stage.open();
  for (const user of ["ana", "bob"]) await stage.cli("users", "create", user);
  page = await signedIn(stage, "/admin/policy");
  // An invalid policy has no effect to show.
  allow(page, /status of 400.*policy\/preview/);
});
afterAll(async () => {
  await closeWindow(page);
  await stage.close();
});

const editor = () => page.locator(".cm-content").first();
async function write(text: string) {
  await editor().click();
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Delete");
  // Paste, so that the editor does not close brackets automatically.
  await editor().evaluate((element, pasted) => {
    const data = new DataTransfer();
    data.setData("text/plain", pasted);
    element.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  }, text);
}
const problems = () => page.getByRole("region", { name: "Problems" });
const review = () => page.getByRole("button", { name: "Review and save" });
async function save(reason: string) {
  await review().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Reason").fill(reason);
  const submit = dialog.getByRole("button", { name: /^Save/ });
  await eventually(async () => expect(await submit.isEnabled()).toBe(true));
  expect(await axe(page)).toEqual([]);
  await submit.click();
  await page
    .getByText(/^Version \d+ is now active$/)
    .first()
    .waitFor();
}
const reached = async (from: string) => (await stage.reach(from, "pier")).reached;

describe("the policy", () => {
  test("that is only suggested is not unsaved, and shows no pairs without nodes", async () => {
    await editor().waitFor();
    await eventually(async () => expect(await editor().textContent()).toContain("acls"));
    await page.getByText("0 nodes", { exact: true }).waitFor();
    await eventually(async () => expect(await page.getByText(/unsaved/).count()).toBe(0));
    expect(await page.title()).not.toContain("unsaved");
    await write(`${policy()}// mine`);
    await page
      .getByText(/unsaved/)
      .first()
      .waitFor();
    await page.getByRole("button", { name: "Discard" }).click();
    await page.getByText(/unsaved/).waitFor({ state: "detached" });
  });

  test("shows placeholders while the editor loads", async () => {
    const slow = await newTab(stage, page.context());
    let load = () => {};
    const loads = new Promise<void>((done) => {
      load = done;
    });
    // Delay all chunks that the HTML of the page does not reference.
    const first = await (await slow.request.get(`${stage.url}/admin/policy`)).text();
    await slow.route("**/assets/*.js", async (route) => {
      if (!first.includes(route.request().url().split("/").at(-1) ?? "?")) await loads;
      await route.continue();
    });
    await slow.goto(`${stage.url}/admin/policy`);
    await slow.getByRole("navigation", { name: "Main" }).waitFor();
    await slow.locator("main .skeleton").first().waitFor();
    load();
    await slow.locator(".cm-content").waitFor();
    await slow.close();
  });

  test("allows everything before one is saved", async () => {
    for (const user of ["ana", "bob"]) await stage.join(user, await stage.cli("preauthkeys", "create", "--user", user));
    await stage.join("pier", await stage.cli("preauthkeys", "create", "--tags", "tag:pier"));
    await eventually(async () => expect([await reached("ana"), await reached("bob")]).toEqual([true, true]), 60_000);
  });

  test("with syntax errors is marked where they are, and cannot be saved", async () => {
    await write(policy(anaOnly).replace('"src"', '"src'));
    const problem = problems()
      .getByRole("button", { name: /^Line 4:\d+/ })
      .first();
    await problem.waitFor();
    await page.locator(".cm-lint-marker-error").first().waitFor();
    await page.locator(".cm-lintRange-error").first().waitFor();
    expect(await axe(page)).toEqual([]);
    await problem.click();
    const line = await page.evaluate(() => document.querySelector(".cm-activeLine")?.textContent);
    expect(line).toContain('"action": "accept"');
    await review().click({ force: true });
    await eventually(async () => expect(await page.getByRole("dialog").count()).toBe(0));
  });

  test("with unknown names is marked too", async () => {
    await write(policy(anaOnly.replace("tag:pier:*", "tag:pear:*")));
    await problems()
      .getByRole("button", { name: /^Line 4:\d+.*tag:pear/ })
      .first()
      .waitFor();
  });

  test("shows who loses access before it is saved, and then removes it", async () => {
    await write(policy(anaOnly));
    await problems().getByText("No problems").waitFor();
    await page
      .getByText(/pairs? loses? access/)
      .first()
      .waitFor();

    await page.setViewportSize({ width: 1440, height: 560 });
    await review().click();
    const dialog = page.getByRole("dialog");
    const reason = dialog.getByRole("textbox").first();
    const submit = dialog.getByRole("button", { name: /^Save/ });
    await eventually(async () => expect(await submit.isEnabled()).toBe(true));
    await dialog
      .locator(".overflow-y-auto")
      .first()
      .evaluate((body) => body.scrollTo(0, body.scrollHeight));
    for (const button of [submit, dialog.getByRole("button", { name: "Try for 5 minutes" })]) {
      await button.click();
      await eventually(async () =>
        expect(await reason.evaluate((field) => [field === document.activeElement, field.ariaInvalid])).toEqual([
          true,
          "true",
        ]),
      );
      const shown = await dialog.getByRole("alert").evaluate((error) => {
        const { x, y, width, height } = error.getBoundingClientRect();
        return error.contains(document.elementFromPoint(x + width / 2, y + height / 2));
      });
      expect(shown, "the error is on the screen").toBe(true);
      await dialog
        .locator(".overflow-y-auto")
        .first()
        .evaluate((body) => body.scrollTo(0, body.scrollHeight));
    }
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await page.setViewportSize({ width: 1440, height: 900 });
    await save("only Ana reaches the pier");
    await eventually(async () => expect([await reached("ana"), await reached("bob")]).toEqual([true, false]), 30_000);
  });

  test("that would lock everyone out shows a warning", async () => {
    await write(policy());
    await page.getByText("Lockout").first().waitFor();
    await page.getByText("No node can reach tag:pier on port 22 any more.").first().waitFor();
    expect(await axe(page)).toEqual([]);
    await page.getByRole("button", { name: "Discard" }).click();
    await page.getByText("unsaved").waitFor({ state: "detached" });
  });

  test("shows who gains access, and gives a real client access at once", async () => {
    await write(policy(anaOnly, bobToo));
    await page
      .getByText(/pairs? gains? access/)
      .first()
      .waitFor();
    await save("Bob too");
    await eventually(async () => expect(await reached("bob")).toBe(true), 30_000);
  });

  test("is saved once if the response is lost, and not shown as somebody else's", async () => {
    const versions = async () => {
      const headers = { Authorization: `Bearer ${stage.admin}` };
      const answer = await fetch(`${stage.server}/api/v1/policy/versions`, { headers });
      return ((await answer.json()) as { versions: unknown[] }).versions.length;
    };
    const before = await versions();
    allow(page, /status of 50[24].*api\/v1\/policy/);
    await stage.faults({ method: "PUT", path: "^/api/v1/policy$", lose: true });
    await write(policy(anaOnly, `${bobToo}, // since May`));
    await review().click();
    const dialog = page.getByRole("dialog");
    // A reason is required if the effect is unknown.
    await dialog.getByLabel("Reason").fill("with a comment");
    const submit = dialog.getByRole("button", { name: /^Save/ });
    await submit.click();
    await dialog.getByText("Couldn't save the policy").waitFor();
    await eventually(async () => expect(await versions()).toBe(before + 1));
    await stage.faults();
    await submit.click();
    await dialog.waitFor({ state: "detached" });
    expect(await versions()).toBe(before + 1);
    await eventually(async () => expect(await page.getByText("unsaved").count()).toBe(0));
  });

  test("keeps unsaved changes when somebody leaves the page and returns", async () => {
    await write(policy(anaOnly));
    await page
      .getByText(/unsaved/)
      .first()
      .waitFor();
    await go(page, stage, "/admin/nodes");
    await go(page, stage, "/admin/policy");
    await page
      .getByText(/unsaved/)
      .first()
      .waitFor();
    expect((await editor().locator(":scope > .cm-line").allTextContents()).join("\n")).not.toContain("bob");
    await page.getByRole("button", { name: "Discard" }).click();
  });

  test("is tried for five minutes and reverted", async () => {
    await write(policy(anaOnly));
    await review().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Reason").fill("a trial");
    await dialog.getByRole("button", { name: "Try for 5 minutes" }).click();
    await page
      .getByText(/is active for 5 minutes/)
      .first()
      .waitFor();
    await eventually(async () => expect(await reached("bob")).toBe(false), 30_000);
    const bar = page.getByRole("region", { name: "Policy on trial" });
    await bar.getByRole("button", { name: "Show as API call" }).click();
    await bar.getByText(/curl .*If-Match: "\d+".*\/policy\/confirm/).waitFor();
    await bar.getByText(/curl .*If-Match: "\d+".*\/policy\/revert/).waitFor();
    expect(await axe(page)).toEqual([]);
    await page
      .getByRole("button", { name: /Revert/ })
      .first()
      .click();
    const confirm = page.getByRole("dialog").getByRole("button", { name: /Revert/ });
    if (await confirm.count()) await confirm.click();
    await eventually(async () => expect(await reached("bob")).toBe(true), 30_000);
  });
});
