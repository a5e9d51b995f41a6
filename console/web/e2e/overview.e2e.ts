import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { asStory, axe, closeWindow, eventually, go, Stage, signedIn, withBrowser } from "./rig";
import { settled } from "./screens";

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
  test("shows the counts of the server, and keeps them up to date", async () => {
    await eventually(async () => {
      const all = await nodes();
      const online = all.filter((n) => n.online).length;
      await eventually(async () => expect(await figure("Nodes").innerText()).toContain(`\n${all.length}\n`));
      await eventually(async () =>
        expect(await figure("Online").innerText()).toContain(`\n${online}\n${all.length - online} offline`),
      );
    });
    const users = (JSON.parse(await stage.cli("users", "list", "--output", "json")) as unknown[]).length;
    await eventually(async () => expect(await figure("Active users").innerText()).toContain(`of ${users} (last 24 h)`));
    const before = Number((await figure("Usable pre-auth keys").innerText()).split("\n")[1]);
    await stage.cli("preauthkeys", "create", "--user", "ana", "--expiration", "48h");
    await eventually(async () =>
      expect(await figure("Usable pre-auth keys").innerText()).toContain(`\n${before + 1}\n`),
    );
  });

  test("shows the health of each part, and the version of the server", async () => {
    const health = page.locator("section", { has: page.getByRole("heading", { name: "Health" }) });
    for (const part of ["Server", "Database", "Versions"]) await health.getByText(part, { exact: true }).waitFor();
    await health.getByText("Connected to PostgreSQL.").waitFor();
    const version = (await stage.cli("version")).match(/^server\s+(\S+)/m)?.[1] ?? "";
    expect(version).not.toBe("");
    await health.getByText(`Server and console run ${version}.`).waitFor();
  });

  test("lists changes as they happen", async () => {
    const activity = page.locator("section", { has: page.getByRole("heading", { name: "Recent activity" }) });
    await stage.cli("users", "create", "zita");
    await activity.getByText("zita").first().waitFor();
  });
});

describe("the cluster page", () => {
  const row = (name: string) => page.getByRole("row").filter({ has: page.getByRole("rowheader", { name }) });

  test("shows the replica and the database", async () => {
    await go(page, stage, "/admin/cluster");
    await page.waitForURL("**/admin/settings/cluster");
    const { name, version } = JSON.parse(await stage.cli("cluster", "status", "--output", "json")).replicas[0];
    await row(name).getByText("Active").waitFor();
    await row(name).getByText(version, { exact: true }).waitFor();
    await page.getByText(/^PostgreSQL \d+/).waitFor();
    await page.getByText("No standby is connected.").waitFor();
  });

  test("shows who is missing and how far standbys are behind", async () => {
    const at = new Date(Date.now() - 600_000).toISOString();
    await page.route("**/api/v1/cluster", async (route) => {
      const answer = await route.fetch();
      const cluster = await answer.json();
      const [own] = cluster.replicas;
      const of = (name: string, more: object) => ({ ...own, id: name, name, url: "http://10.0.0.12:8080", ...more });
      cluster.replicas = [
        { ...own, name: "mesh-1", url: "http://10.0.0.11:8080" },
        of("mesh-2", { state: "draining", lagMillis: 7500, nodes: 12 }),
        of("mesh-3", { state: "missing", reportedAt: at }),
        of("mesh-4", { state: "stopped", reportedAt: at, startedAt: null }),
      ];
      const standby = { name: "standby1", address: "10.0.0.22", state: "streaming" };
      Object.assign(cluster.database, { timeline: 3, synchronousStandbyNames: "standby1" });
      cluster.database.standbys = [{ ...standby, sync: "sync", lagBytes: 5000, lagMillis: 2 }];
      cluster.problems = ["replica mesh-3 has not reported since 08:00; start it again, or look at its log"];
      cluster.notes = ["the replicas run different versions, as during an upgrade"];
      await route.fulfill({ response: answer, json: cluster });
    });
    await page.reload();
    await page.getByRole("status", { name: "Problems" }).getByText("Replica mesh-3 has not reported").waitFor();
    await row("mesh-1").getByText("responds now").waitFor();
    await row("mesh-2").getByText("7.5 s behind").waitFor();
    await row("mesh-3").getByText("Missing").waitFor();
    await row("mesh-4").getByText("Stopped").waitFor();
    await row("standby1").getByText("Synchronous").waitFor();
    await row("standby1").getByText("4.9 KiB, 2 ms").waitFor();
    expect(await axe(page)).toEqual([]);
    // The table scrolls if it is too wide, also with the keyboard.
    await page.setViewportSize({ width: 390, height: 844 });
    const table = page.locator("div[tabindex='0']", { has: page.getByRole("table", { name: "Replicas" }) });
    await table.focus();
    await page.keyboard.press("ArrowRight");
    await eventually(async () => expect(await table.evaluate((e) => e.scrollLeft)).toBeGreaterThan(0));
    expect(await axe(page)).toEqual([]);
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.unrouteAll({ behavior: "wait" });
  });

  test("shows relays, and drains and removes them", async () => {
    const relays = page.getByRole("region", { name: "Relays" });
    await relays.getByText("fairlead relays create").waitFor();
    for (const name of ["osl-1", "osl-2"]) await stage.cli("relays", "create", name, "--region", "osl");
    await row("osl-1").getByText("Waiting").waitFor();
    // What a relay reports and what probes find is replaced, because no relay runs here.
    await page.route("**/api/v1/relay", async (route) => {
      const answer = await route.fetch();
      const body = await answer.json();
      const at = new Date().toISOString();
      const problem = "no response to STUN from UDP port 3478 of osl-2.example.com";
      for (const relay of body.relays) {
        const good = relay.name === "osl-1";
        const checks = [{ name: "stun", passed: good, problem: good ? "" : problem }];
        Object.assign(relay, {
          state: "active",
          url: `https://${relay.name}.example.com`,
          version: "1.2.3",
          clients: 42,
        });
        Object.assign(relay, { reportedAt: at, bytesReceived: "3221225472", bytesSent: "5000" });
        relay.probe = { at, reachable: good, milliseconds: good ? 12.3 : null, checks };
      }
      await route.fulfill({ response: answer, json: body });
    });
    await row("osl-1").getByText("Yes, in 12 ms").waitFor();
    await row("osl-1").getByText("3.0 GiB received, 4.9 KiB sent").waitFor();
    await row("osl-2").getByText("STUN: No response to STUN from UDP port 3478").waitFor();
    expect(await axe(page)).toEqual([]);
    await page.unrouteAll({ behavior: "wait" }); // a request may be in flight
    const act = async (name: string, action: string) => {
      await page.getByRole("button", { name: `Actions for ${name}` }).click();
      await page.getByRole("menuitem", { name: action }).click();
    };
    const listed = async () => JSON.parse(await stage.cli("relays", "list", "--output", "json")) as { name: string }[];
    await act("osl-1", "Drain");
    await page.getByRole("dialog").getByText("No other relay of this region is active").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Drain" }).click();
    await page.getByRole("region", { name: "Messages" }).getByText("Relay osl-1 is draining").waitFor();
    await row("osl-2").getByText("Waiting").waitFor();
    await act("osl-2", "Remove");
    await page.getByRole("dialog").getByRole("button", { name: "Remove relay" }).click();
    await eventually(async () => expect((await listed()).map((r) => r.name)).toEqual(["osl-1"]));
    await row("osl-2").waitFor({ state: "detached" });
    await stage.cli("relays", "delete", "osl-1", "--force");
    await relays.getByText("fairlead relays create").waitFor();
    await go(page, stage, "/admin/");
  });
});

describe("the next steps", () => {
  asStory();
  let fresh: Stage;
  let page: Page;
  const steps = () => page.getByRole("region", { name: "Next steps" });
  const done = (count: number) => steps().getByText(`${count} of 6 done`, { exact: true }).waitFor();
  const take = (name: string) => steps().getByRole("link", { name: new RegExp(`: ${name}$`) });
  const call = async (method: string, path: string, body: unknown) => {
    const answer = await fetch(fresh.server + path, {
      method,
      headers: { authorization: `Bearer ${fresh.admin}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(await answer.text());
  };
  const savePolicy = (policy: object) => call("PUT", "/api/v1/policy", { policy: JSON.stringify(policy) });

  beforeAll(async () => {
    fresh = await Stage.open();
    page = await signedIn(fresh, "/admin/");
  });
  afterAll(async () => {
    await closeWindow(page);
    await fresh.close();
  });

  test("are listed once the first device has joined", async () => {
    await page.getByText("Waiting for your device…").waitFor();
    await eventually(async () => expect(await steps().count()).toBe(0));
    await fresh.cli("users", "create", "ana");
    await fresh.knock("laptop");
    const code = async () =>
      (JSON.parse(await fresh.cli("auth", "list", "--output", "json")) as { code: string }[])[0]?.code;
    await eventually(async () => expect(await code()).toBeTruthy());
    await fresh.cli("auth", "approve", (await code()) ?? "", "--user", "ana");
    await page.getByRole("button", { name: "Go to overview" }).click();
    await done(0);
    expect(await axe(page)).toEqual([]);
  });

  test("are checked off by what the server reports", async () => {
    const everyone = { action: "accept", src: ["*"], dst: ["*:*"] };
    await savePolicy({ acls: [everyone] });
    await fresh.key();
    await steps().getByText("Create a second admin API key").waitFor();
    await take("Create a second admin API key").waitFor({ state: "detached" });
    await done(1);
    await take("Restrict access with a policy").waitFor();
    await savePolicy({
      tagOwners: { "tag:server": ["ana"] },
      autoApprovers: { routes: { "192.168.7.0/24": ["ana"] } },
      acls: [{ action: "accept", src: ["ana"], dst: ["tag:server:22"] }],
    });
    await done(2);
    const key = (await fresh.cli("preauthkeys", "create", "--user", "ana")).trim();
    const random = () => Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("hex");
    await call("POST", "/api/v1/machine", {
      preAuthKey: key,
      machineKey: `mkey:${random()}`,
      nodeKey: `nodekey:${random()}`,
      hostname: "router",
      routableIPs: ["192.168.7.0/24"],
    });
    await done(3);
    await fresh.cli("nodes", "tag", "laptop", "--tags", "tag:server");
    await done(4);
    await eventually(async () => expect(await steps().getByRole("img", { name: "Done", exact: true }).count()).toBe(4));
  });

  test("lead to where they are taken", async () => {
    await eventually(async () =>
      expect(await take("Set up backups").getAttribute("href")).toMatch(/\/docs\/backup\.md#every-night$/),
    );
    await eventually(async () =>
      expect(await take("Turn on HTTPS").getAttribute("href")).toMatch(/\/docs\/install\.md$/),
    );
  });

  test("include backups, which the person ticks and this browser remembers", async () => {
    const backups = () => steps().getByRole("checkbox", { name: "Set up backups" });
    await backups().click();
    await done(5);
    await go(page, fresh, "/admin/");
    await done(5);
    await backups().click();
    await done(4);
    await backups().click();
    await done(5);
  });

  test("are hidden on request, and shown again from the settings", async () => {
    await steps().getByRole("button", { name: "Hide" }).click();
    await steps().waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Undo" }).click();
    await done(5);
    await steps().getByRole("button", { name: "Hide" }).click();
    await go(page, fresh, "/admin/");
    await settled(page);
    await eventually(async () => expect(await steps().count()).toBe(0));
    await go(page, fresh, "/admin/settings/appearance");
    await page.getByRole("switch", { name: "Next steps on the overview" }).click();
    await go(page, fresh, "/admin/");
    await done(5);
  });

  test("disappear when all are done, but not from under the pointer", async () => {
    // The stage has no certificate for devices, so pretend that its URL uses HTTPS.
    await page.route("**/admin/api/session", async (route) => {
      const session = await (await route.fetch()).json();
      session.coordinator.url = "https://mesh.example.com";
      await route.fulfill({ json: session });
    });
    await go(page, fresh, "/admin/");
    await settled(page);
    await eventually(async () => expect(await steps().count()).toBe(0));
    await page.evaluate(() => localStorage.clear());
    await go(page, fresh, "/admin/");
    await done(5);
    await steps().getByRole("checkbox", { name: "Set up backups" }).click();
    await steps().getByText("All steps are done.").waitFor();
    const rail = page.getByRole("navigation", { name: "Main" });
    await rail.getByRole("link", { name: /^Nodes/ }).click();
    await page.locator("tr[data-row]").first().waitFor();
    await rail.getByRole("link", { name: /^Overview/ }).click();
    await page.getByText("Connected to PostgreSQL.").waitFor();
    await settled(page);
    await eventually(async () => expect(await steps().count()).toBe(0));
    await page.unrouteAll({ behavior: "wait" });
  });

  test("are for those who can take them", async () => {
    const reader = await signedIn(fresh, "/admin/", {}, await fresh.key("--role", "read"));
    await settled(reader);
    await eventually(async () => expect(await reader.getByRole("region", { name: "Next steps" }).count()).toBe(0));
    await closeWindow(reader);
  });
});
