import type { CDPSession, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { allow, asStory, axeInBothThemes, closeWindow, eventually, newWindow, Stage, withBrowser } from "./rig";
import { heading } from "./signin";

withBrowser();
asStory();
let stage: Stage;
let page: Page;
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

const invite = async () => {
  const printed = await stage.cli("users", "invite", "alice");
  return /https?:\S+/.exec(printed)?.[0] ?? "";
};
const code = async () => (await page.locator("p.recovery").innerText()).trim();

beforeAll(async () => {
  stage = await Stage.open({ host: "localhost" });
  await stage.cli("users", "create", "alice");
  page = await newWindow(stage);
  allow(page, /favicon/, /status of 4\d\d/);
});
afterAll(async () => {
  await closeWindow(page);
  await stage.close();
});

test("a person accepts an invitation with a new passkey, with the keyboard alone, and gets a recovery code", async () => {
  await page.goto(await invite());
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
