import type { CDPSession, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  allow,
  asStory,
  axeInBothThemes,
  closeWindow,
  eventually,
  everything,
  newWindow,
  Stage,
  signedIn,
  withBrowser,
} from "./rig";
import { heading } from "./signin";

withBrowser();
asStory();
let stage: Stage;
let page: Page;
let admin: Page;
let link = "";
let recovery = "";
/** The passkeys on the person's device. Chromium loses them when a page of another site opens. */
let stored: Credential[] = [];
let device: CDPSession | undefined;

interface Credential {
  credentialId: string;
  isResidentCredential: boolean;
  rpId?: string;
  privateKey: string;
  userHandle?: string;
  signCount: number;
}

/** Presses the button of a page that uses a passkey. The device of the person unlocks it. */
async function press(name: string) {
  await device?.detach();
  const session = await page.context().newCDPSession(page);
  device = session;
  await session.send("WebAuthn.enable", { enableUI: false });
  const { authenticatorId } = await session.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  for (const credential of stored) await session.send("WebAuthn.addCredential", { authenticatorId, credential });
  const used = new Promise<Credential>((done) => {
    session.once("WebAuthn.credentialAdded", ({ credential }) => done(credential));
    session.once("WebAuthn.credentialAsserted", ({ credential }) => done(credential));
  });
  await page.bringToFront();
  await page.getByRole("button", { name }).focus();
  await page.keyboard.press("Enter");
  const problem = page.locator("#problem:not(:empty)").waitFor();
  const credential = await Promise.race([used, problem]);
  if (!credential) throw new Error(await page.locator("#problem").innerText());
  stored = [credential];
}

const code = async () => (await page.locator("p.recovery").innerText()).trim();

beforeAll(async () => {
  stage = await Stage.open({ host: "localhost" });
  page = await newWindow(stage);
  allow(page, /favicon/, /status of 4\d\d/);
});
afterAll(async () => {
  await closeWindow(page);
  if (admin) await closeWindow(admin);
  await stage.close();
});

test("an administrator creates a user and an invitation, whose link is shown once", async () => {
  admin = await signedIn(stage, "/admin/users?create=1");
  const dialog = admin.getByRole("dialog", { name: "Create user" });
  await dialog.getByLabel("Name", { exact: true }).fill("alice");
  await dialog.getByRole("checkbox", { name: "Invite the person to sign in" }).check();
  await dialog.getByRole("button", { name: "Create user" }).focus();
  await admin.keyboard.press("Enter");
  const invite = admin.getByRole("dialog", { name: "Invite alice to sign in with a passkey" });
  await invite.getByRole("radio", { name: "1 day" }).check();
  expect(await axeInBothThemes(admin, "[role=dialog]")).toEqual([]);
  await invite.getByRole("button", { name: "Create link" }).focus();
  await admin.keyboard.press("Enter");
  const made = admin.getByRole("dialog", { name: "Invitation link for alice" });
  link = await made.getByRole("textbox", { name: "Invitation link for alice" }).inputValue();
  expect(link).toMatch(/\/passkey\/invite\/fli_/);
  await made.getByRole("checkbox", { name: "I've copied this link" }).check();
  await made.getByRole("button", { name: "Close", exact: true }).last().click();
  await made.waitFor({ state: "detached" });
  expect(await everything(admin)).not.toContain(link);
});

test("a person accepts an invitation with a new passkey, with the keyboard alone, and gets a recovery code", async () => {
  await page.goto(link);
  await heading(page, "Create a passkey");
  await press("Create passkey");
  await heading(page, "Your passkey is ready");
  recovery = await code();
  expect(recovery).toMatch(/^\S+$/);
  expect(await axeInBothThemes(page)).toEqual([]);
});

test("signs in to the console with it", async () => {
  const link = page.getByRole("link", { name: "Sign in with a passkey" });
  await eventually(async () => {
    await page.goto(stage.direct); // the console asks the server every few seconds how people can sign in
    expect(await link.count()).toBe(1);
  });
  await link.click();
  await heading(page, "Sign in with your passkey");
  await press("Use passkey");
  await heading(page, "My devices");
});

test("replaces a lost passkey with the recovery code", async () => {
  await page.goto(`${stage.server}/passkey/recover`);
  await heading(page, "Use your recovery code");
  expect(await axeInBothThemes(page)).toEqual([]);
  stored = [];
  await page.getByLabel("Recovery code").fill(recovery);
  await page.keyboard.press("Enter");
  await heading(page, "Create a passkey");
  await press("Create passkey");
  await heading(page, "Your passkey is ready");
  expect(await code()).not.toBe(recovery);
});

test("an administrator sees the passkey and deletes it, so that the person can't sign in any more", async () => {
  await admin.getByRole("link", { name: "alice", exact: true }).click();
  await admin.getByText("Member, by default").waitFor();
  const passkeys = admin.getByRole("list", { name: "Passkeys of this user" });
  await passkeys.getByText("Passkey 1").waitFor();
  expect(await axeInBothThemes(admin)).toEqual([]);
  await passkeys.getByRole("button", { name: "Delete passkey 1" }).focus();
  await admin.keyboard.press("Enter");
  const dialog = admin.getByRole("dialog", { name: "Delete a passkey of alice?" });
  await dialog.getByText("This is the user's last passkey.").waitFor();
  await dialog.getByRole("button", { name: "Delete passkey" }).focus();
  await admin.keyboard.press("Enter");
  await admin.getByText("This user has no passkey and can't sign in.").waitFor();
  expect(JSON.parse(await stage.cli("users", "passkeys", "list", "--output", "json"))).toEqual([]);
});
