import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { afterAll, beforeAll, describe, test } from "vitest";
import { allow, closeWindow, newWindow, Stage, signIn, withBrowser } from "./rig";
import { looks, settled } from "./screens";
import { addDevice, personIn } from "./signin";

withBrowser();
const folder = resolve(import.meta.dirname, "../../../dist/screens");
mkdirSync(folder, { recursive: true });

/** Screens of people who sign in with an identity provider. */
describe("people", () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await Stage.open({
      provider: true,
      set: {
        "node.approval_required": "true",
        "oidc.user_approval_required": "true",
        "oidc.recheck": "2s",
        "oidc.extra_params": '{"prompt": "consent"}', // for refresh tokens
      },
    });
    for (const [person, device] of [
      ["ann", "laptop"],
      ["bob", "tablet"],
      ["carl", "phone"],
    ] as const)
      await addDevice(stage, person, device);
    for (const name of ["ann", "carl"]) await stage.cli("users", "approve", name);
    await stage.cli("users", "suspend", "carl");
    await stage.cli("nodes", "approve", "laptop");
    await stage.cli("preauthkeys", "create", "--user", "ann", "--expiration", "4h");
    await addDevice(stage, "ann", "desktop");
    await stage.cli("users", "create", "dora", "--display-name", "Dora Example");
    await stage.cli("users", "set-role", "dora", "operator");
  });
  afterAll(() => stage.close());

  test.each(looks)("$width px, $theme", async ({ width, theme }) => {
    const page = await newWindow(stage, { width, theme, height: width < 500 ? 844 : 900 });
    allow(page, /favicon/);
    await signIn(page, stage);
    for (const [name, path] of [
      ["requests-waiting", "/requests"],
      ["nodes-waiting", "/nodes?tab=waiting"],
      ["node-waiting", "/nodes/2"],
      ["users-states", "/users"],
      ["user-suspended", "/users/3"],
      ["user-local", "/users/4"],
    ] as const) {
      await page.goto(`${stage.url}/admin${path}`);
      await settled(page);
      await page.screenshot({ path: `${folder}/people-${name}-${width}-${theme}.png` });
    }
    for (const [name, button, dialog] of [
      ["role", "Change", "Change the role of dora"],
      ["invite", "Invite", "Invite dora to sign in with a passkey"],
    ] as const) {
      await page.getByRole("button", { name: button, exact: true }).click();
      await page.getByRole("dialog", { name: dialog }).waitFor();
      await page.screenshot({ path: `${folder}/people-user-${name}-${width}-${theme}.png` });
      await page.keyboard.press("Escape");
      await page.getByRole("dialog", { name: dialog }).waitFor({ state: "detached" });
    }
    const own = await personIn(stage, "ann", { width, theme, height: width < 500 ? 844 : 900 });
    await settled(own);
    await own.screenshot({ path: `${folder}/people-my-devices-${width}-${theme}.png` });
    await own.getByRole("button", { name: /^Actions for laptop/ }).click();
    await own.getByRole("menuitem", { name: "Show access" }).click();
    await own
      .getByRole("dialog")
      .getByText(/can't reach|Destination/)
      .waitFor();
    await own.screenshot({ path: `${folder}/people-my-access-${width}-${theme}.png` });
    await page.goto(`${stage.url}/admin/settings/sessions`);
    await settled(page);
    await page.screenshot({ path: `${folder}/people-sessions-${width}-${theme}.png` });
    await closeWindow(page);
    await closeWindow(own);
  });
});
