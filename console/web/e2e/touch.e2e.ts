import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { closeWindow, go, Stage, signedIn, withBrowser } from "./rig";

withBrowser();
let stage: Stage;
let phone: Page;
beforeAll(async () => {
  stage = await Stage.open({ nodes: 40 });
  const context = { hasTouch: true, isMobile: true, viewport: { width: 390, height: 844 } };
  phone = await signedIn(stage, "/admin/nodes", { context });
});
afterAll(async () => {
  await closeWindow(phone);
  await stage.close();
});

test("frequent controls are large, and not close to others", async () => {
  const sizes = async (of: Locator) => {
    await of.first().waitFor();
    const boxes = await Promise.all((await of.all()).map((each) => each.boundingBox()));
    return boxes.flatMap((box) => (box ? [{ ...box, right: box.x + box.width, bottom: box.y + box.height }] : []));
  };
  await go(phone, stage, "/admin/nodes");
  for (const { height } of await sizes(phone.getByRole("link", { name: "Add device" })))
    expect(height).toBeGreaterThanOrEqual(44);
  await phone
    .getByRole("list", { name: "Node list" })
    .getByRole("button", { name: /^Actions for / })
    .first()
    .tap();
  await phone.getByRole("menuitem", { name: "Rename" }).tap();
  const buttons = await sizes(phone.getByRole("dialog").getByRole("button", { name: /^(Cancel|Rename)$/ }));
  expect(buttons.map(({ height }) => height)).toEqual([44, 44]);
  await phone.getByRole("button", { name: "Cancel" }).tap();

  await go(phone, stage, "/admin/routes");
  for (const { width, height } of await sizes(phone.getByRole("switch")))
    expect(Math.min(width, height)).toBeGreaterThanOrEqual(24);
  await go(phone, stage, "/admin/nodes/7");
  for (const { width, height } of await sizes(phone.getByRole("button", { name: /^Copy / })))
    expect(Math.min(width, height)).toBeGreaterThanOrEqual(32);
  const near = await sizes(phone.getByRole("region", { name: "Identity" }).getByRole("button"));
  expect(near.length).toBeGreaterThan(1);
  for (const [i, a] of near.entries())
    for (const b of near.slice(i + 1)) {
      expect(a.height).toBeGreaterThanOrEqual(32);
      const gap = Math.max(b.x - a.right, a.x - b.right, b.y - a.bottom, a.y - b.bottom);
      expect(gap).toBeGreaterThanOrEqual(4);
    }
});
