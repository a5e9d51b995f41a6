import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { axe, closeWindow, eventually, go, Stage, signedIn, withBrowser } from "./rig";

withBrowser();
let stage: Stage;
let page: Page;

interface Listed {
  id: string;
  givenName: string;
  tags: string[];
  user: { name: string } | null;
  expired: boolean;
  approvedRoutes: string[];
  availableRoutes: string[];
}
let nodes: Listed[] = [];
/** The members of group:ops, who can reach everything. */
const operators = ["ana", "goran", "mei"];
const some = (what: (node: Listed) => boolean): Listed => {
  const found = nodes.find((node) => !node.expired && what(node));
  if (!found) throw new Error("the mesh has no such node");
  return found;
};

interface Side {
  kind: string;
  name: string;
  id: string;
}
/** The IDs of the nodes that see a node, according to the access map by nodes. */
async function seenBy(node: Listed): Promise<Set<string>> {
  const seen = new Set<string>();
  for (const [flag, far] of [
    ["--from", "to"],
    ["--to", "from"],
  ] as const) {
    const map = JSON.parse(
      await stage.cli("policy", "access", flag, node.givenName, "--by", "nodes", "--output", "json"),
    ) as Record<"from" | "to", Side[]> & { cells: Record<"from" | "to", number>[] };
    for (const cell of map.cells) {
      const side = map[far][cell[far]];
      if (side?.kind === "node") seen.add(side.id);
      const routes = side?.kind === "internet" ? ["0.0.0.0/0", "::/0"] : [side?.name ?? ""];
      for (const router of nodes)
        if (
          routes.some((r) => router.approvedRoutes.includes(r) && router.availableRoutes.includes(r)) &&
          !router.expired
        )
          seen.add(router.id);
    }
  }
  seen.delete(node.id);
  return seen;
}

beforeAll(async () => {
  stage = await Stage.open({ nodes: 200 });
  nodes = JSON.parse(await stage.cli("nodes", "list", "--output", "json")) as Listed[];
  page = await signedIn(stage, "/admin/");
});
afterAll(async () => {
  await closeWindow(page);
  await stage.close();
});

const peers = () => page.getByRole("region", { name: "Visible peers" });
const rows = () => peers().getByRole("list", { name: "Visible peers" }).getByRole("listitem");
const open = (node: { id: string }) => go(page, stage, `/admin/nodes/${node.id}?tab=connectivity`);
const number = async (label: RegExp) => {
  const words = (await peers().getByText(label).first().textContent()) ?? "";
  return Number(words.replace(/\D/g, ""));
};

describe("the connectivity of a node", () => {
  test("is one click away from the summary, and shows relays, NAT and endpoints", async () => {
    const node = some(({ tags }) => tags.includes("tag:web"));
    await go(page, stage, `/admin/nodes/${node.id}`);
    await page.getByRole("link", { name: "Show connectivity" }).click();
    await page.getByRole("tab", { name: "Connectivity", selected: true }).waitFor();
    await page.getByRole("region", { name: "Findings" }).getByRole("listitem").first().waitFor();
    const network = page.getByRole("region", { name: "Network (device-reported)" });
    await network.getByText(/^203\.0\.113\.\d+:\d+$/).waitFor();
    await network.getByText("Public", { exact: true }).waitFor();
    await network.getByText("Local", { exact: true }).waitFor();
    const latencies = page.getByRole("table", { name: "Relay latency" });
    await eventually(async () => expect(await latencies.getByRole("row").count()).toBe(4));
    // The home relay is the closest one.
    await latencies.getByRole("row").nth(1).getByText("home").waitFor();
  });

  test("says what the server cannot know, with commands to copy", async () => {
    const section = page.getByRole("region", { name: "Direct or relayed right now?" });
    await section.getByText("The server can't tell").waitFor();
    await section.getByText("tailscale ping NAME").waitFor();
    await eventually(async () => expect(await section.getByRole("button", { name: "Copy command" }).count()).toBe(3));
  });

  test.each([
    ["a tagged server", (n: Listed) => n.tags.includes("tag:web")],
    ["a server with two tags", (n: Listed) => n.tags.includes("tag:db")],
    ["a runner", (n: Listed) => n.tags.includes("tag:ci")],
    ["an operator's device", (n: Listed) => n.tags.length === 0 && operators.includes(n.user?.name ?? "")],
    ["a developer's device", (n: Listed) => n.tags.length === 0 && n.user?.name === "chidi"],
  ])("lists the peers that the policy makes visible to %s", async (_, what) => {
    const node = some(what);
    const seen = await seenBy(node);
    await open(node);
    await rows().first().waitFor();
    expect(await number(/^All /)).toBe(seen.size);
    const [likely, unlikely, unknown] = [
      await number(/^Likely /),
      await number(/^Unlikely /),
      await number(/^Unknown /),
    ];
    expect(likely + unlikely + unknown).toBe(seen.size);
    await eventually(async () => expect(await rows().count()).toBe(Math.min(25, seen.size)));
  });

  test("is paged and filtered, and each peer says why it is visible", async () => {
    const node = some(({ tags, user }) => tags.length === 0 && operators.includes(user?.name ?? ""));
    await open(node);
    await rows().first().waitFor();
    await rows().first().getByText("this node can reach it").waitFor();
    await rows()
      .first()
      .getByRole("button", { name: /^Open line \d+$/ })
      .first()
      .waitFor();
    const first = await rows().first().getByRole("link").textContent();
    await page.getByRole("button", { name: "Next" }).click();
    await peers()
      .getByText(/^26–50 of \d+$/)
      .waitFor();
    await eventually(async () => expect(await rows().first().getByRole("link").textContent()).not.toBe(first));
    await peers()
      .getByText(/^Unlikely /)
      .click();
    await page.waitForURL(/direct=unlikely/);
    const shown = await rows().count();
    expect(shown).toBeGreaterThan(0);
    await eventually(async () => expect(await rows().getByText("Direct unlikely").count()).toBe(shown));
    await peers().getByText(/^All /).click();
    await page.getByLabel("Filter peers by name").fill(first ?? "");
    await rows()
      .getByRole("link", { name: first ?? "", exact: true })
      .waitFor();
    // Two rules let operators reach web servers: the one for operators and the one for everyone.
    await page.getByLabel("Filter peers by name").fill("web-");
    await rows().first().getByRole("link", { name: /^web-/ }).waitFor();
    await rows()
      .first()
      .getByRole("button", { name: /^Open line \d+$/ })
      .nth(1)
      .waitFor();
    await page.getByLabel("Filter peers by name").fill("nothing has this name");
    await peers().getByText("No peer matches.").waitFor();
  });

  test("fits a phone, in both themes", async () => {
    const node = some(({ tags }) => tags.includes("tag:web"));
    for (const theme of ["light", "dark"] as const) {
      const phone = await signedIn(stage, `/admin/nodes/${node.id}?tab=connectivity`, {
        width: 390,
        height: 844,
        theme,
      });
      await phone.getByRole("list", { name: "Visible peers" }).getByRole("listitem").first().waitFor();
      expect(await axe(phone)).toEqual([]);
      expect(await phone.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
      await closeWindow(phone);
    }
  });

  test("of a device that never reported anything is unknown, and says so", async () => {
    const key = JSON.parse(await stage.cli("preauthkeys", "create", "--tags", "tag:web", "--output", "json")) as {
      key: string;
    };
    const hex = (digit: string) => digit.repeat(64);
    const made = JSON.parse(
      await stage.cli(
        ...["nodes", "enrol", "silent", "--auth-key", key.key, "--output", "json"],
        ...["--machine-key", `mkey:${hex("5")}`, "--node-key", `nodekey:${hex("6")}`],
      ),
    ) as { id: string };
    await open(made);
    await page.getByText("The device hasn't reported any network details yet", { exact: false }).waitFor();
    await page.getByText("The device isn't connected to the server", { exact: false }).waitFor();
    await eventually(async () => expect(await page.getByRole("table", { name: "Relay latency" }).count()).toBe(0));
    await rows().first().waitFor();
    expect(await number(/^Likely /)).toBe(0);
    expect(await number(/^Unknown /)).toBeGreaterThan(0);
    await rows().getByText("This device hasn't reported its NAT.").first().waitFor();
    expect(await axe(page)).toEqual([]);
  });

  test("shows no peers to a key that may not read the policy", async () => {
    const node = some(({ tags }) => tags.includes("tag:web"));
    const key = await stage.key("--role", "read", "--scope", "nodes:read");
    const limited = await signedIn(stage, `/admin/nodes/${node.id}?tab=connectivity`, {}, key.trim());
    await limited.getByText("Your API key needs the scope policy:read to show the peers.").waitFor();
    await limited.getByRole("region", { name: "Findings" }).waitFor();
    await closeWindow(limited);
  });
});
