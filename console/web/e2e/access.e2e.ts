import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allow, asStory, axe, closeWindow, eventually, hold, Stage, signedIn, withBrowser } from "./rig";

withBrowser();
asStory();
let stage: Stage;
let page: Page;

beforeAll(async () => {
  stage = await Stage.open({ nodes: 200 });
  page = await signedIn(stage, "/admin/access");
  await page.getByRole("grid").waitFor();
});
afterAll(async () => {
  await closeWindow(page);
  await stage.close();
});

const cell = (from: string, to: string) => page.getByRole("gridcell", { name: `${from} to ${to}:` });
const ask = async (from: string, to: string, port: string) => {
  await page.getByLabel("From", { exact: true }).fill(from);
  await page.getByLabel("to", { exact: true }).fill(to);
  await page.getByLabel("port", { exact: true }).fill(port);
  await page.keyboard.press("Enter");
};

describe("the access map", () => {
  test("shows the same access as the command line", async () => {
    const said = JSON.parse(await stage.cli("policy", "access", "--output", "json")) as {
      from: { name: string }[];
      to: { name: string }[];
      cells: { from: number; to: number; pairs: number; of: number }[];
    };
    const found = said.cells.find((c) => said.from[c.from]?.name === "tag:api" && said.to[c.to]?.name === "tag:db");
    expect(found?.pairs).toBeGreaterThan(0);
    await cell("tag:api", "tag:db").getByText(String(found?.pairs), { exact: false }).waitFor();
    await cell("tag:ci", "tag:db").getByText("no access").waitFor({ state: "attached" });
  });

  test("opens a cell by keyboard, and returns the focus", async () => {
    await page.locator("[role=gridcell][tabindex='0']").focus();
    for (const key of ["ArrowDown", "ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
    const focused = () => page.evaluate(() => document.activeElement?.id);
    // The focus moves in the next animation frame.
    await eventually(async () => expect(await focused()).toBe("cell-1-2"));
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Nodes", exact: true }).waitFor();
    await page.locator("aside li a").first().waitFor();
    expect(await axe(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await eventually(async () => expect(await focused()).toBe("cell-1-2"));
  });

  test("opens an empty cell by click, with a button to check access", async () => {
    await cell("tag:ci", "tag:db").click();
    const panel = page.getByRole("complementary", { name: "tag:ci → tag:db" });
    await panel.getByText("No access").waitFor();
    expect(await axe(page)).toEqual([]);
    await panel.getByRole("button", { name: "Check access" }).click();
    await page.getByRole("region", { name: "Answer" }).getByText("Not allowed").waitFor();
    await page.getByRole("button", { name: "Clear result" }).click();
  });

  test("says that a node is offline", async () => {
    const nodes = JSON.parse(await stage.cli("nodes", "list", "--output", "json")) as {
      givenName: string;
      online: boolean;
      expired: boolean;
    }[];
    const name = nodes.find((node) => !node.online && !node.expired)?.givenName ?? "";
    const online = nodes.find((node) => node.online)?.givenName ?? "";
    await ask(name, online, "22");
    await page.getByText(`${name} is offline`).waitFor();
    await eventually(async () => expect(await page.getByText(`${online} is offline`).count()).toBe(0));
    expect(await axe(page)).toEqual([]);
    await page.getByRole("button", { name: "Clear result" }).click();
  });

  test("explains why access is missing, with the closest rules", async () => {
    await ask("bjorn", "tag:db", "5432");
    await page.getByRole("region", { name: "Answer" }).getByText("Not allowed").waitFor();
    await page.getByText("source must be group:ops").waitFor();
    expect(await axe(page)).toEqual([]);
  });

  test("drafts a rule, and shows its effect before it is saved", async () => {
    await page.getByRole("button", { name: "Draft a rule" }).click();
    await page.waitForURL(/\/admin\/policy\?line=/);
    await page.goBack();
    await page.getByText("based on unsaved draft").waitFor();
    await page.getByText("Allowed", { exact: true }).waitFor();
    await cell("bjorn", "tag:db").getByText("gained port 5432").waitFor({ state: "attached" });
    expect(await axe(page)).toEqual([]);
    expect(await stage.cli("policy", "why", "bjorn", "tag:db:5432")).toContain("Not allowed");
  });

  test("shows no effect of the draft until it is known", async () => {
    allow(page, /status of 502/);
    const same = page.getByText("Your unsaved draft doesn't change access");
    const pass = await hold(page, "**/policy/access");
    await page.reload();
    await page.getByText("Calculating the effect of your unsaved draft").waitFor();
    await eventually(async () => expect(await same.count()).toBe(0));
    await pass();
    await page.getByText(/^With your unsaved draft: \d+ gained/).waitFor();
    await stage.faults({ method: "POST", path: "/policy/access$", status: 500 });
    await page.reload();
    await page.getByText("Couldn't calculate the effect of your unsaved draft").waitFor();
    await eventually(async () => expect(await same.count()).toBe(0));
    expect(await axe(page)).toEqual([]);
    await stage.faults();
    await page.reload();
    await cell("bjorn", "tag:db").getByText("gained port 5432").waitFor({ state: "attached" });
  });

  test("draws the draft, with each path as a named button", async () => {
    await page.getByRole("tab", { name: "Flow" }).click();
    const gained = page.getByRole("button", { name: /^bjorn to .*gained$/ });
    await gained.waitFor();
    await gained.focus();
    await page.keyboard.press("Enter");
    await page.getByText("new in draft").waitFor();
    expect(await axe(page)).toEqual([]);
    await page.keyboard.press("Escape");
    expect(await gained.evaluate((e) => e === document.activeElement)).toBe(true);
    await page.getByRole("button", { name: "Show active policy" }).click();
    await page.getByRole("region", { name: "Answer" }).getByText("Not allowed").waitFor();
    await eventually(async () => expect(await gained.count()).toBe(0));
  });

  test("has a table that can be filtered and exported", async () => {
    await page.getByRole("tab", { name: "Table" }).click();
    await page.getByLabel("Filter rows").fill("from:tag:api to:tag:db");
    await page.locator("tr[data-row]").nth(1).waitFor({ state: "detached" });
    const file = page.waitForEvent("download");
    await page.getByRole("button", { name: "Export" }).click();
    await page.getByRole("menuitem", { name: /CSV/ }).click();
    expect((await file).suggestedFilename()).toMatch(/^access-.*\.csv$/);
    await page.getByLabel("Filter rows").fill("from:tag:");
    await page.locator("tr[data-row]").nth(1).waitFor();
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    expect(await axe(page)).toEqual([]);
    await page.getByRole("menuitemcheckbox", { name: /^PostgreSQL/ }).click();
    await page.keyboard.press("Escape");
    await eventually(async () => expect(await page.getByLabel("Filter rows").inputValue()).toBe("from:tag: port:5432"));
    await eventually(async () => {
      const rows = await page.locator("tr[data-row]").allTextContents();
      expect(rows.length).toBeGreaterThan(0);
      expect(rows.filter((row) => !/5432|all ports/.test(row))).toEqual([]);
    });
  });

  test("creates policy tests from a cell and from a pair of its nodes", async () => {
    await page.goto(`${stage.url}/admin/access`);
    await cell("tag:api", "tag:db").click();
    const panel = page.getByRole("complementary", { name: "tag:api → tag:db" });
    await panel.getByRole("button", { name: "Add as test", exact: true }).click();
    await page.waitForURL(/\/admin\/policy\?line=/);
    await page.goBack();
    // A cell in which only some pairs have access cannot become a single test.
    await cell("tag:prod", "tag:api").click();
    const some = page.getByRole("complementary", { name: "tag:prod → tag:api" });
    await some
      .getByRole("button", { name: /^Add as test: web-/ })
      .first()
      .click();
    await eventually(async () =>
      expect(await some.getByRole("button", { name: "Add as test", exact: true }).count()).toBe(0),
    );
    await page.waitForURL(/\/admin\/policy\?line=/);
    await page
      .getByText(/^(\d+) of \1 pass$/)
      .first()
      .waitFor();
    const lines = await page.locator(".cm-line").allTextContents();
    for (const test of ['"src": "tag:api", "accept": ["tag:db:5432"]', '"src": "tag:web", "accept": ["tag:api:8443"]'])
      expect(lines.filter((line) => line.includes(test))).toHaveLength(1);
    await eventually(async () => expect(await page.getByRole("img", { name: "Fails" }).count()).toBe(0));
  });

  test("creates policy tests for SSH and subnets that an edit opens", async () => {
    const editor = await signedIn(stage, "/admin/nodes");
    const saved = (await (
      await fetch(`${stage.server}/api/v1/policy`, { headers: { authorization: `Bearer ${stage.admin}` } })
    ).json()) as { version: string; policy: string };
    const shell = '{"action": "check", "src": ["group:ops"], "dst": ["tag:db"], "users": ["root"]}';
    const draft = saved.policy
      .replace('"acls": [', `"ssh": [${shell}],\n  "acls": [`)
      .replace('"10.20.0.0/14:80,443"', '"10.20.0.0/14:80,443,8080"');
    await editor.evaluate(
      (kept) => sessionStorage.setItem("policy-draft", kept),
      JSON.stringify({
        base: saved.version,
        text: draft,
      }),
    );
    await editor.goto(`${stage.url}/admin/policy`);
    const effect = (title: string) =>
      editor.locator("section").filter({ has: editor.getByRole("heading", { name: title }) });
    for (const title of ["SSH access", "Subnet routes and exit nodes"])
      await effect(title)
        .getByRole("button", { name: /^Add as test: / })
        .first()
        .click();
    await eventually(async () => {
      const lines = (await editor.locator(".cm-line").allTextContents()).join("\n");
      expect(lines).toMatch(/"dst": \["tag:db"\], "check": \["root"\]/);
      expect(lines).toMatch(/"accept": \["10\.2\d\.\d+\.1:8080"\]/);
    });
    await editor
      .getByText(/^(\d+) of \1 pass$/)
      .first()
      .waitFor();
    // Content that is being recalculated is dimmed until it is ready.
    await eventually(async () => expect(await axe(editor)).toEqual([]));
    await closeWindow(editor);
  });

  test("offers no edits to a read-only key", async () => {
    const key = (await stage.key("--role", "read")).trim();
    const reader = await signedIn(stage, "/admin/access?from=bjorn&to=tag:db&port=5432", {}, key);
    await reader.getByRole("region", { name: "Answer" }).getByText("Not allowed").waitFor();
    await eventually(async () =>
      expect(await reader.getByRole("button", { name: /Draft a rule|Add as test/ }).count()).toBe(0),
    );
    await closeWindow(reader);
  });
});
