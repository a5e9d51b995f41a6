import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { closeWindow, Stage, signedIn, tell, withBrowser } from "./rig";

withBrowser();
const stages: Record<number, Stage> = {};
/** CI sets CROWD to a smaller number of nodes, because each of them sees all others. */
const large = Number(process.env.CROWD || 5000);
const counts = [200, large];

beforeAll(async () => {
  for (const nodes of counts) stages[nodes] = await Stage.open({ nodes });
});
afterAll(async () => {
  for (const stage of Object.values(stages)) await stage.close();
});

const on = (nodes: number) => stages[nodes] as Stage;

/** Returns the median time in milliseconds until the first rows of the list are visible and usable. */
async function firstUsefulPaint(page: Page, url: string): Promise<number> {
  const took = [];
  for (let i = 0; i < 7; i++) {
    await page.goto("about:blank");
    await page.goto(url, { waitUntil: "commit" });
    took.push(
      await page.evaluate(
        () =>
          new Promise<number>((done) => {
            const look = () =>
              document.querySelectorAll("tr[data-row]").length > 5
                ? requestAnimationFrame(() => done(performance.now()))
                : requestAnimationFrame(look);
            look();
          }),
      ),
    );
  }
  return took.sort((a, b) => a - b)[3] as number;
}

/** Milliseconds between keys: twice as fast as a fast typist. */
const rhythm = 60;

/** Types filters and deletes them again, and measures the time from each key press to the next frame. */
async function typing(page: Page): Promise<{ p50: number; p95: number }> {
  const words = ["web-fra", "tag:prod", "user:ana", "-is:online", "10.20"];
  await page.evaluate(() => {
    const w = window as unknown as { paints: number[]; measures?: boolean };
    w.paints = [];
    if (w.measures) return;
    w.measures = true;
    const measure = () => {
      const began = performance.now();
      requestAnimationFrame(() => {
        const channel = new MessageChannel();
        channel.port1.onmessage = () => w.paints.push(performance.now() - began);
        channel.port2.postMessage(0);
      });
    };
    addEventListener("keydown", measure, { capture: true });
  });
  for (const word of words) {
    for (const key of [...word, ...Array(word.length).fill("Backspace")]) {
      await page.keyboard.press(key);
      await page.waitForTimeout(rhythm);
    }
  }
  const paints = await page.evaluate(() => (window as unknown as { paints: number[] }).paints.sort((a, b) => a - b));
  expect(paints.length).toBeGreaterThan(60);
  const at = (part: number) => paints[Math.floor(paints.length * part)] as number;
  return { p50: at(0.5), p95: at(0.95) };
}

/**
 * Returns the 95th percentile of the best of up to three typing rounds: other load on the machine only makes a round
 * slower. A round within the limit is the last one.
 */
async function quietestTyping(nodes: number, limit = 0): Promise<number> {
  const page = await signedIn(on(nodes), "/admin/nodes");
  await page.locator("tr[data-row]").first().waitFor();
  await page.getByText(nodes.toLocaleString("en")).first().waitFor();
  await page.getByLabel("Filter nodes").focus();
  const rounds: { p50: number; p95: number }[] = [];
  for (let i = 0; i < 3 && rounds.every((r) => r.p95 > limit); i++) rounds.push(await typing(page));
  tell(
    `letter to paint with ${nodes}: ${rounds.map((r) => `p50 ${r.p50.toFixed(1)} ms, p95 ${r.p95.toFixed(1)} ms`).join("; ")}`,
  );
  await closeWindow(page);
  return Math.min(...rounds.map((r) => r.p95));
}

describe(`with ${large.toLocaleString("en")} nodes`, () => {
  test("the list loads within 1.5 times the time for 200 nodes", async () => {
    const took: Record<number, number> = {};
    for (const nodes of counts) {
      const page = await signedIn(on(nodes), "/admin/nodes");
      took[nodes] = await firstUsefulPaint(page, `${on(nodes).url}/admin/nodes`);
      await closeWindow(page);
    }
    const [few, many] = [took[200] as number, took[large] as number];
    tell(`first useful paint: ${few.toFixed(0)} ms with 200, ${many.toFixed(0)} ms with ${large}`);
    expect(many / few).toBeLessThanOrEqual(1.5);
  });

  test("a page has at most 2,500 elements at any scroll position", async () => {
    const page = await signedIn(on(large), "/admin/nodes");
    await page.locator("tr[data-row]").first().waitFor();
    const elements = () => page.evaluate(() => document.querySelectorAll("*").length);
    const counted = [await elements()];
    for (let i = 0; i < 5; i++) {
      await page.mouse.move(700, 500);
      await page.mouse.wheel(0, 20_000);
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      counted.push(await elements());
    }
    tell(`elements: ${counted.join(", ")}`);
    expect(Math.max(...counted)).toBeLessThanOrEqual(2500);
    await closeWindow(page);
  });

  test("typing in the filter updates the screen within 50 ms in 19 of 20 cases", async () => {
    const many = await quietestTyping(large, 50);
    // A machine may be too slow for 50 ms with any number of nodes. In that case, many nodes may take 1.5 times as long
    // as few.
    const limit = many <= 50 ? 50 : 1.5 * (await quietestTyping(200));
    expect(many).toBeLessThanOrEqual(limit);
  });
});
