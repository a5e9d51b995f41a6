import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allow, asStory, axe, closeWindow, eventually, go, Stage, signedIn, withBrowser } from "./rig";

withBrowser();
asStory();
let stage: Stage;
let page: Page;
/** The example policy, and a copy in which developers can also reach web servers by SSH. */
let saved = { version: "", policy: "" };
let granted = "";

const call = async (method: string, path: string, body?: object) => {
  const answer = await fetch(`${stage.server}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${stage.admin}`, "content-type": "application/json" },
    body: body && JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json() as Promise<unknown>;
};

beforeAll(async () => {
  stage = await Stage.open({ nodes: 200 });
  saved = (await call("GET", "/policy")) as typeof saved;
  granted = saved.policy.replace('"tag:ci:22"]', '"tag:ci:22", "tag:web:22"]');
  expect(granted).not.toBe(saved.policy);
  page = await signedIn(stage, "/admin/nodes");
});
afterAll(async () => {
  await closeWindow(page);
  await stage.close();
});

/** Opens the editor with an unsaved draft. An editor that is open would overwrite it. */
async function edit(base: string, text: string) {
  await page.goto(`${stage.url}/admin/nodes`);
  await page.evaluate((draft) => sessionStorage.setItem("policy-draft", draft), JSON.stringify({ base, text }));
  await page.goto(`${stage.url}/admin/policy`);
}
const tile = (words: RegExp) => page.locator("dl > div").filter({ hasText: words }).first();
const number = async (words: RegExp) =>
  Number((await tile(words).locator("dd").textContent())?.replace(/\D/g, "") ?? Number.NaN);
const cards = () => page.locator("aside li").filter({ has: page.getByRole("img", { name: "to" }) });

describe("the effect of an edit", () => {
  test("counts pairs that only gain a port, on one card per rule", async () => {
    await edit(saved.version, granted);
    await tile(/pairs gain access/).waitFor();
    const gained = await number(/pairs gain access/);
    expect(gained).toBeGreaterThan(0);
    expect(await number(/lose access/)).toBe(0);
    await tile(/pairs gain access/)
      .getByText(`${gained.toLocaleString("en")} had access on other ports`)
      .waitFor();
    const ports = cards().filter({ hasText: "gains port 22" });
    await eventually(async () => expect(await ports.count()).toBe(1));
    const card = await ports.textContent();
    expect(card).toMatch(/^group:devtag:web/);
    expect(card).toContain(`${gained.toLocaleString("en")} pairs`);
    await eventually(async () => expect(await axe(page)).toEqual([]));
  });

  test("is also shown on the save button", async () => {
    const { version } = (await call("PUT", "/policy", { policy: granted, reason: "SSH" })) as { version: string };
    await edit(version, saved.policy);
    await tile(/pairs lose access/).waitFor();
    const lost = await number(/pairs lose access/);
    expect(lost).toBeGreaterThan(0);
    await eventually(async () => expect(await cards().filter({ hasText: "loses port 22" }).count()).toBe(1));
    await page.getByRole("button", { name: "Review and save" }).click();
    const count = lost.toLocaleString("en");
    await page.getByRole("button", { name: `Save and remove access for ${count} pairs` }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Discard" }).click();
    await page.getByText("unsaved").waitFor({ state: "detached" });
  });

  test("is also shown in the list of versions", async () => {
    await go(page, stage, "/admin/policy/versions");
    const newest = page.locator("tr[data-row]").first();
    await newest.getByText(/^\d+ pairs gained access$/).waitFor({ state: "attached" });
  });
});

describe("the text of a version", () => {
  test("has line numbers next to their lines, even if fonts load late", async () => {
    const { version } = (await call("GET", "/policy")) as { version: string };
    const late = await signedIn(stage, "/admin/nodes", { width: 1440, height: 900 });
    await late.route(/jetbrains.*woff2/, async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 1500));
      await route.continue();
    });
    await late.goto(`${stage.url}/admin/policy/versions/${version}`);
    await late.locator(".cm-changedLine").first().waitFor();
    await late.waitForFunction(
      () => document.fonts.status === "loaded" && document.fonts.check("13px 'JetBrains Mono Variable'"),
    );
    await eventually(async () => {
      const far = await late.evaluate(() => {
        const tops = (selector: string) =>
          [...document.querySelectorAll<HTMLElement>(selector)]
            .filter(
              (one) => one.offsetHeight > 0 && one.textContent !== "" && getComputedStyle(one).visibility !== "hidden",
            )
            .map((one) => one.getBoundingClientRect().top);
        const numbers = tops(".cm-lineNumbers .cm-gutterElement");
        return [...document.querySelectorAll(".cm-content > .cm-line")]
          .map((line) => line.getBoundingClientRect().top)
          .map((top) => Math.min(...numbers.map((number) => Math.abs(number - top))));
      });
      expect(far.length).toBeGreaterThan(3);
      expect(Math.max(...far)).toBeLessThan(2);
    });
    await closeWindow(late);
  });
});

describe("a user without devices", () => {
  test("has a page that shows what the policy would allow", async () => {
    await stage.cli("users", "create", "olga");
    const { users } = (await call("GET", "/user?name=olga")) as { users: { id: string; name: string }[] };
    const id = users.find((user) => user.name === "olga")?.id;
    await go(page, stage, `/admin/users/${id}?tab=access`);
    await page.getByText("olga has no devices yet.").waitFor();
    const reached = page.getByRole("table", { name: "Can reach" });
    await reached.getByRole("row", { name: /tag:web.*443/ }).waitFor();
    expect(await axe(page)).toEqual([]);
    await go(page, stage, "/admin/access?from=olga&to=tag:web&port=443");
    await page.getByText("Allowed", { exact: true }).waitFor();
  });
});

describe("the form to check access", () => {
  const from = () => page.getByLabel("From", { exact: true });
  const to = () => page.getByLabel("to", { exact: true });

  test("suggests names, which can be chosen by keyboard", async () => {
    await go(page, stage, "/admin/access");
    await from().fill("op");
    await page.getByRole("option", { name: /group:ops/ }).waitFor();
    expect(await axe(page)).toEqual([]);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await eventually(async () => expect(await from().inputValue()).toBe("group:ops"));
    await eventually(async () => expect(await page.getByRole("listbox", { name: "Suggestions" }).count()).toBe(0));
    await to().click();
    await page.getByRole("option", { name: /tag:db/ }).click();
    await eventually(async () => expect(await to().inputValue()).toBe("tag:db"));
    await page.keyboard.press("Enter");
    await page
      .getByText(/^Allowed/)
      .first()
      .waitFor();
  });

  test("suggests others for an unknown name", async () => {
    allow(page, /status of 404.*policy\/why/);
    await to().fill("tag:dbb");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("No node, user, group, tag or address is called tag:dbb.").waitFor();
    await eventually(async () => expect(await to().getAttribute("aria-invalid")).toBe("true"));
    expect(await axe(page)).toEqual([]);
    await page.getByRole("button", { name: "tag:db", exact: true }).click();
    await page
      .getByText(/^Allowed/)
      .first()
      .waitFor();
    await eventually(async () => expect(await page.getByRole("alert").count()).toBe(0));
  });
});

describe("the views of the access map", () => {
  test("have a legend for colours and numbers", async () => {
    await go(page, stage, "/admin/access");
    const legend = page.getByRole("region", { name: "Legend" });
    await legend.getByText("All pairs of nodes have access").waitFor();
    await page.getByRole("gridcell", { name: /^tag:api to tag:db:.*pairs/ }).waitFor();
    await page.getByRole("tab", { name: "Flow" }).click();
    await legend.getByText("Thicker path: more pairs of nodes").waitFor();
  });

  test("are not empty for nodes", async () => {
    await go(page, stage, "/admin/access?by=nodes");
    await page.getByRole("grid").waitFor();
    const first = page.locator("#cell-0-0, #cell-0-1, #cell-1-0, #cell-1-1");
    await eventually(async () => {
      const said = await first.allTextContents();
      expect(said).toHaveLength(4);
      expect(said.filter((words) => !words.includes("no access")).length).toBeGreaterThan(0);
    });
  });
});

describe("the editor", () => {
  const lines = async () => (await page.locator(".cm-line").allTextContents()).join("\n");

  test("wraps long lines, and finds text", async () => {
    await go(page, stage, "/admin/policy");
    const content = page.locator(".cm-content").first();
    await content.click();
    expect(
      await page
        .locator(".cm-scroller")
        .first()
        .evaluate((e) => e.scrollWidth - e.clientWidth),
    ).toBe(0);
    await page.keyboard.press("Control+f");
    const bar = page.getByRole("search", { name: "Find and replace" });
    await bar.getByLabel("Find", { exact: true }).fill("tag:db");
    await bar.getByText(/^\d+ found$/).waitFor();
    await page.keyboard.press("Enter");
    await bar.getByText(/^\d+ of \d+$/).waitFor();
    expect(await axe(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await bar.waitFor({ state: "detached" });
  });

  test("inserts a rule from a form without changing anything else", async () => {
    const before = (await call("GET", "/policy")) as { policy: string };
    await page.getByRole("button", { name: "Add rule" }).click();
    const form = page.getByRole("form", { name: "Add a rule" });
    await form.getByLabel("Who").fill("group:dev");
    await page.keyboard.press("Enter");
    await form.getByLabel("Can reach").fill("tag:db");
    await form.getByRole("option", { name: /^tag:db/ }).click();
    await form.getByLabel("Ports").fill("5432");
    await form.getByLabel("Comment").fill("Developers read the databases.");
    await eventually(async () => expect(await axe(page)).toEqual([]));
    await form.getByRole("button", { name: "Insert rule" }).click();
    await page.getByText("unsaved").first().waitFor();
    const draft = await page.evaluate(() => JSON.parse(sessionStorage.getItem("policy-draft") ?? "{}").text as string);
    const added = [
      "    // Developers read the databases.",
      '    { "action": "accept", "src": ["group:dev"], "dst": ["tag:db:5432"] },',
    ];
    const rest = draft.split("\n").filter((line) => !added.includes(line));
    expect(rest.join("\n")).toBe(before.policy);
    expect(await lines()).toContain("Developers read the databases.");
    await cards().filter({ hasText: "group:dev" }).filter({ hasText: "gains port 5432" }).waitFor();
    await form.getByRole("button", { name: "Close" }).click();
  });

  test("offers templates that the server accepts", async () => {
    for (const name of ["Home", "Small team with servers", "Company with environments", "Company with contractors"]) {
      await page.getByRole("button", { name: "More", exact: true }).click();
      await page.getByRole("menuitem", { name: "Templates" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("radio", { name }).check();
      await eventually(async () => expect(await axe(page)).toEqual([]));
      const text = (await dialog.locator("pre").textContent()) ?? "";
      await dialog.getByRole("button", { name: "Use template" }).click();
      await dialog.waitFor({ state: "detached" });
      await call("POST", "/policy/check", { policy: text });
      await eventually(async () => expect(await lines()).toContain("autogroup:self:*"));
      await page.getByRole("region", { name: "Problems" }).getByText("No problems").waitFor();
      await tile(/pairs lose access/).waitFor();
    }
    await page.getByRole("button", { name: "Discard" }).click();
    await page.getByText("unsaved").waitFor({ state: "detached" });
  });
});
