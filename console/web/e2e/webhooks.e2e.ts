import { createHmac } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allow, asStory, axe, closeWindow, eventually, everything, go, Stage, signedIn, withBrowser } from "./rig";

withBrowser();
asStory();
let stage: Stage;
let page: Page;
let receiver: Server;
let url = "";
let host = "";
let answer = 204;
const received: { event: string; headers: IncomingHttpHeaders; body: string }[] = [];

beforeAll(async () => {
  receiver = createServer((request, response) => {
    let body = "";
    request.on("data", (part) => {
      body += part;
    });
    request.on("end", () => {
      received.push({ event: String(request.headers["mesh-event"]), headers: request.headers, body });
      response.writeHead(answer).end(answer === 204 ? undefined : "no room");
    });
  });
  await new Promise<void>((listening) => receiver.listen(0, "127.0.0.1", listening));
  host = `127.0.0.1:${(receiver.address() as AddressInfo).port}`;
  url = `http://${host}/mesh`;
  stage = await Stage.open();
  page = await signedIn(stage, "/admin/settings/webhooks");
});
afterAll(async () => {
  await closeWindow(page);
  await stage.close();
  await new Promise((closed) => receiver.close(closed));
});

const card = () => page.getByRole("region", { name: host });
const dialog = () => page.getByRole("dialog");
const act = async (what: string) => {
  await card()
    .getByRole("button", { name: `Actions for ${host}` })
    .click();
  await page.getByRole("menuitem", { name: what }).click();
};
/** Whether a request was signed with the secret. */
const signed = ({ headers, body }: (typeof received)[number], secret: string) =>
  headers["mesh-signature"] ===
  `v1=${createHmac("sha256", secret).update(`${headers["mesh-timestamp"]}.${body}`).digest("hex")}`;
/** Sends a test from the card, and returns what the receiver got. */
const sendTest = async () => {
  const before = received.length;
  await card().getByRole("button", { name: "Send test" }).click();
  await eventually(() => expect(received.slice(before).map(({ event }) => event)).toContain("webhook.test"));
  return received.slice(before).find(({ event }) => event === "webhook.test") as (typeof received)[number];
};
/** Takes the secret from the dialog that shows it once. */
const takeSecret = async () => {
  const secret = await page.getByRole("textbox", { name: "Your webhook secret" }).inputValue();
  expect(secret).toMatch(/^flw_/);
  expect(await axe(page)).toEqual([]);
  await dialog().getByRole("checkbox").check();
  await dialog().getByRole("button", { name: "Close", exact: true }).last().click();
  await dialog().waitFor({ state: "detached" });
  expect(await everything(page)).not.toContain(secret);
  return secret;
};

describe("a webhook", () => {
  let secret = "";

  test("is created, and its secret is shown once", async () => {
    await page.getByText("No webhooks yet").waitFor();
    await page.getByRole("button", { name: "Create webhook" }).click();
    const submit = dialog().getByRole("button", { name: "Create webhook" });
    await submit.click();
    await dialog().getByText("Enter an address such as").waitFor();
    await dialog().getByLabel("URL").fill(url);
    await dialog().getByLabel("Events", { exact: true }).fill("machine.*");
    await submit.click();
    await dialog().getByText("Unknown event machine.*").waitFor();
    await dialog().getByLabel("Events", { exact: true }).fill("");
    await dialog().getByRole("button", { name: "user.*" }).click();
    expect(await axe(page)).toEqual([]);
    await submit.click();
    secret = await takeSecret();
    await card().getByText("No events yet").waitFor();
    expect(await axe(page)).toEqual([]);
  });

  test("is tested, and shows the response of the receiver", async () => {
    expect(signed(await sendTest(), secret)).toBe(true);
    await card()
      .getByText(/^Delivered: status 204 after \d+ ms$/)
      .waitFor();
    answer = 507;
    await sendTest();
    await card()
      .getByText(/^Not delivered: .*507/)
      .waitFor();
    await card().getByText("Response: no room").waitFor();
    answer = 204;
  });

  test("receives the events it is for, and none while it is disabled", async () => {
    await stage.cli("users", "create", "ana");
    await eventually(() => expect(received.map(({ event }) => event)).toContain("user.created"));
    await card().getByText("Healthy").waitFor();
    const toggle = card().getByRole("switch", { name: `Send events to ${host}` });
    await toggle.click();
    await page.getByText(`Webhook to ${host} disabled`).first().waitFor();
    await card().getByText("Disabled").waitFor();
    await stage.cli("users", "create", "bob");
    await toggle.click();
    await page.getByText(`Webhook to ${host} enabled`).first().waitFor();
    await stage.cli("users", "create", "chidi");
    await eventually(() => expect(received.filter(({ body }) => body.includes('"chidi"'))).not.toEqual([]));
    expect(received.filter(({ body }) => body.includes('"bob"'))).toEqual([]);
  });

  test("is edited", async () => {
    await act("Edit");
    await eventually(async () => expect(await dialog().getByLabel("URL").inputValue()).toBe(url));
    await eventually(async () =>
      expect(await dialog().getByLabel("Events", { exact: true }).inputValue()).toBe("user.*"),
    );
    await dialog().getByLabel("Description (optional)").fill("chat of the administrators");
    await dialog().getByLabel("Events", { exact: true }).fill("");
    await dialog().getByRole("button", { name: "Save webhook" }).click();
    await card().getByText("chat of the administrators").waitFor();
    await card().getByText("All events").waitFor();
    const [saved] = JSON.parse(await stage.cli("webhooks", "list", "--output", "json"));
    expect(saved).toMatchObject({ url, description: "chat of the administrators", events: [], enabled: true });
  });

  test("gets a new secret, which signs from then on", async () => {
    await act("Rotate secret");
    await dialog().getByRole("button", { name: "Rotate secret" }).click();
    const next = await takeSecret();
    expect(next).not.toBe(secret);
    const got = await sendTest();
    expect([signed(got, secret), signed(got, next)]).toEqual([false, true]);
  });

  test("lists failed deliveries, which can be sent again", async () => {
    await card().getByRole("button", { name: "Failed deliveries" }).click();
    await card().getByText("No failed deliveries.").waitFor();
    // The server gives up only after a day, so the failed events are mocked.
    const event = (id: number) => ({
      id: String(id),
      eventId: `${id}-0`,
      event: "node.created",
      attempts: 1443,
      answer: "503 Service Unavailable",
      at: "2026-03-01T09:30:00Z",
    });
    let left = [1, 2, 3];
    await page.route("**/api/v1/webhooks/*/failed?**", (route) =>
      route.fulfill({ json: { events: left.map(event), next: "" } }),
    );
    await page.route("**/api/v1/webhooks/*/failed/*/redeliver", (route) => {
      const id = Number(route.request().url().split("/").at(-2));
      const delivered = id !== 2;
      if (delivered) left = left.filter((each) => each !== id);
      const [status, problem] = delivered ? [204, ""] : [503, "503 Service Unavailable"];
      return route.fulfill({ json: { delivered, status, millis: 1, reply: "", problem } });
    });
    await go(page, stage, "/admin/settings/webhooks");
    await card().getByRole("button", { name: "Failed deliveries" }).click();
    await card().getByRole("button", { name: "Redeliver node.created 1-0" }).click();
    await page.getByText("1 event delivered").first().waitFor();
    await eventually(async () => expect(await card().getByRole("row").count()).toBe(3));
    expect(await axe(page)).toEqual([]);
    await card().getByRole("button", { name: "Redeliver all 2 events" }).click();
    await page.getByText("Couldn't deliver 1 event").first().waitFor();
    await eventually(async () => expect(await card().getByRole("row").count()).toBe(2));
    await page.unroute("**/api/v1/webhooks/*/failed?**");
    await page.unroute("**/api/v1/webhooks/*/failed/*/redeliver");
    allow(page, /status of 404/);
    await card().getByRole("button", { name: "Redeliver node.created 2-0" }).click();
    await card().getByText("No failed deliveries.").waitFor();
  });

  test("can be tested by an operator key, and shows only its host to a read-only key", async () => {
    const operator = await signedIn(stage, "/admin/settings/webhooks", {}, await stage.key("--role", "operator"));
    await operator.getByRole("button", { name: "Send test" }).click();
    await operator.getByText(/^Delivered: status 204/).waitFor();
    await eventually(async () => expect(await operator.getByRole("switch").count()).toBe(0));
    await eventually(async () =>
      expect(await operator.getByRole("button", { name: /^(Create|Actions)/ }).count()).toBe(0),
    );
    await closeWindow(operator);
    const reader = await signedIn(stage, "/admin/settings/webhooks", {}, await stage.key("--role", "read"));
    await reader.getByRole("heading", { name: host }).waitFor();
    await eventually(async () => expect(await reader.getByText(url).count()).toBe(0));
    await eventually(async () => expect(await reader.getByRole("button", { name: "Send test" }).count()).toBe(0));
    await closeWindow(reader);
  });

  test("is deleted", async () => {
    await act("Delete");
    await dialog().getByRole("button", { name: "Delete webhook" }).click();
    await page.getByText("No webhooks yet").waitFor();
    expect(JSON.parse(await stage.cli("webhooks", "list", "--output", "json"))).toEqual([]);
  });
});
