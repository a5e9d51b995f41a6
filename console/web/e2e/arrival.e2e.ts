import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { axe, closeWindow, eventually, Stage, signedIn, withBrowser } from "./rig";

withBrowser();
let stage: Stage;
let page: Page;

/** Saves a policy with one rule, as another administrator would. */
async function allow(src: string, dst: string) {
  const policy = JSON.stringify({ acls: [{ action: "accept", src: [src], dst: [dst] }] });
  const answer = await fetch(`${stage.server}/api/v1/policy`, {
    method: "PUT",
    headers: { authorization: `Bearer ${stage.admin}`, "content-type": "application/json" },
    body: JSON.stringify({ policy }),
  });
  if (!answer.ok) throw new Error(await answer.text());
}

beforeAll(async () => {
  stage = await Stage.open({ nodes: 4 });
  await stage.cli("users", "create", "zita");
  await allow("ana", "ana:22");
  page = await signedIn(stage, "/admin/nodes/new");
});
afterAll(async () => {
  await closeWindow(page);
  await stage.close();
});

test("a new device without access shows a warning until a rule gives it some", async () => {
  await page.getByRole("radio", { name: /^A person's laptop or phone/ }).check();
  await page.getByText("The new node appears here automatically.").waitFor();
  await stage.knock("zita-laptop");
  const code = async () =>
    (JSON.parse(await stage.cli("auth", "list", "--output", "json")) as { code: string }[])[0]?.code;
  await eventually(async () => expect(await code()).toBeTruthy());
  await stage.cli("auth", "approve", (await code()) ?? "", "--user", "zita");
  await page.getByRole("heading", { name: "zita-laptop joined" }).waitFor();
  const warning = page.getByText("No policy rule applies to this node yet");
  await warning.waitFor();
  expect(await axe(page)).toEqual([]);
  await allow("*", "*:*");
  await warning.waitFor({ state: "detached" });
});
