import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { closeWindow, eventually, Stage, signedIn, withBrowser } from "./rig";

withBrowser();
let stage: Stage;
let page: Page;

beforeAll(async () => {
  stage = await Stage.open({ nodes: 40 });
  page = await signedIn(stage, "/admin/");
});
afterAll(async () => {
  await closeWindow(page);
  await stage.close();
});

interface Listed {
  online: boolean;
  availableRoutes: string[];
  approvedRoutes: string[];
}
const nodes = async () => JSON.parse(await stage.cli("nodes", "list", "--output", "json")) as Listed[];
const figure = (title: string) =>
  page.getByRole("region", { name: "Network summary" }).getByRole("link", { name: new RegExp(`^${title}`) });

describe("the overview", () => {
  test("counts what the server counts, and counts on", async () => {
    await eventually(async () => {
      const all = await nodes();
      const online = all.filter((n) => n.online).length;
      expect(await figure("Nodes").innerText()).toContain(`\n${all.length}\n`);
      expect(await figure("Online").innerText()).toContain(`\n${online}\n${all.length - online} offline`);
    });
    const users = (JSON.parse(await stage.cli("users", "list", "--output", "json")) as unknown[]).length;
    expect(await figure("Active users").innerText()).toContain(`of ${users} (last 24 h)`);
    const before = Number((await figure("Usable pre-auth keys").innerText()).split("\n")[1]);
    await stage.cli("preauthkeys", "create", "--user", "ana", "--expiration", "48h");
    await eventually(async () =>
      expect(await figure("Usable pre-auth keys").innerText()).toContain(`\n${before + 1}\n`),
    );
  });

  test("tells the health of each part, and the version of the server", async () => {
    const health = page.locator("section", { has: page.getByRole("heading", { name: "Health" }) });
    for (const part of ["Server", "Database", "Versions"]) await health.getByText(part, { exact: true }).waitFor();
    await health.getByText("Connected to PostgreSQL.").waitFor();
    const version = (await stage.cli("version")).match(/^server\s+(\S+)/m)?.[1] ?? "";
    expect(version).not.toBe("");
    await health.getByText(`Server and console run ${version}.`).waitFor();
  });

  test("lists what changes, as it changes", async () => {
    const activity = page.locator("section", { has: page.getByRole("heading", { name: "Recent activity" }) });
    await stage.cli("users", "create", "zita");
    await activity.getByText("zita").first().waitFor();
  });
});
