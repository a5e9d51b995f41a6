import { resolve } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, test } from "vitest";
import { closeWindow, newWindow, Stage, signIn, withBrowser } from "./rig";
import { settled } from "./screens";

/** Takes the screenshots in docs/images. */
withBrowser();
const folder = resolve(import.meta.dirname, "../../../docs/images");
const server = "https://mesh.example.com";
let stage: Stage;
let page: Page;

beforeAll(async () => {
  stage = await Stage.open({ nodes: 200 });
});
afterAll(() => stage.close());

test.each<{ name: string; path: string; width?: number; height?: number; theme?: "dark"; edit?: boolean }>([
  { name: "overview", path: "/", height: 900 },
  { name: "nodes", path: "/nodes" },
  { name: "nodes-dark", path: "/nodes", theme: "dark" },
  { name: "phone", path: "/nodes", width: 390, height: 844 },
  { name: "node", path: "/nodes/7" },
  { name: "connectivity", path: "/nodes/7?tab=connectivity" },
  { name: "add-device", path: "/nodes/new", height: 760 },
  { name: "policy", path: "/policy", height: 900, edit: true },
  { name: "access", path: "/access?from=bjorn&to=tag:db&port=5432" },
  { name: "timeline", path: "/timeline" },
])("$name", async ({ name, path, width = 1280, height = 800, theme, edit }) => {
  page = await newWindow(stage, { width, height, theme });
  // The test server has no domain name, so the pages get the URL of an example.
  await page.route(/\/api\/session$/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: (await response.text()).replaceAll(stage.server, server) });
  });
  await signIn(page, stage);
  if (edit) {
    const saved = JSON.parse(await stage.cli("policy", "get", "--output", "json")) as {
      version: string;
      policy: string;
    };
    const text = saved.policy.replace('"tag:ci:22"]', '"tag:ci:22", "tag:web:22"]');
    const draft = JSON.stringify({ base: saved.version, text });
    await page.evaluate((value) => sessionStorage.setItem("policy-draft", value), draft);
  }
  await page.goto(`${stage.url}/admin${path}`);
  await settled(page);
  if (edit) await page.getByText("pairs gain access").first().waitFor();
  await page.screenshot({ path: `${folder}/console-${name}.png` });
  await closeWindow(page);
});
