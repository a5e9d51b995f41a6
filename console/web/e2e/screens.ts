import type { Page } from "playwright-core";
import { watch } from "./rig";

/** Every screen of the console: its name, and its path below /admin. */
export const screens: Record<string, string> = {
  overview: "/",
  nodes: "/nodes",
  "node-panel": "/nodes?node=7",
  "nodes-filtered": "/nodes?q=tag:prod+-tag:web",
  node: "/nodes/7",
  "node-connectivity": "/nodes/7?tab=connectivity",
  "node-routes": "/nodes/7?tab=routes",
  "node-access": "/nodes/7?tab=access",
  "node-activity": "/nodes/7?tab=activity",
  "add-device": "/nodes/new",
  users: "/users",
  user: "/users/1",
  "user-nodes": "/users/1?tab=nodes",
  "user-access": "/users/1?tab=access",
  routes: "/routes",
  "exit-nodes": "/routes?tab=exits",
  keys: "/keys",
  requests: "/requests",
  policy: "/policy",
  "policy-versions": "/policy/versions",
  "policy-version": "/policy/versions/5",
  access: "/access",
  "access-ask": "/access?from=bjorn&to=tag:db&port=5432",
  "access-flow": "/access?view=flow",
  "access-table": "/access?view=table",
  timeline: "/timeline",
  "api-keys": "/settings/api-keys",
  sessions: "/settings/sessions",
  dns: "/settings/dns",
  webhooks: "/settings/webhooks",
  server: "/settings/server",
  cluster: "/settings/cluster",
  appearance: "/settings/appearance",
  "no-such-page": "/nowhere",
};

/** The windows that screenshots are taken in: two with SCREENS=few, otherwise four. */
export const looks: { width: number; theme: "light" | "dark" }[] = [
  { width: 1440, theme: "light" },
  { width: 390, theme: "dark" },
];
if (process.env.SCREENS !== "few") looks.push({ width: 1440, theme: "dark" }, { width: 390, theme: "light" });

/** Waits until a screen has loaded completely: it has no pending requests and shows no placeholders. */
export async function settled(page: Page) {
  await page.locator("main h1, main h2").first().waitFor();
  for (let quiet = 0; quiet < 3; ) {
    await page.waitForFunction(() => document.querySelectorAll("main .skeleton").length === 0);
    await page.evaluate(async () => {
      await document.fonts.ready;
      await new Promise((done) => setTimeout(done, 50));
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    });
    quiet = watch(page).pending.size === 0 ? quiet + 1 : 0;
  }
}
