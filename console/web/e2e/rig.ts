import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
  type Request,
} from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";

const rig = process.env.CONSOLE_RIG ?? "";
if (!rig) throw new Error("CONSOLE_RIG is not set; run make console-test");

async function ask<T>(path: string, body: unknown, method = "POST"): Promise<T> {
  const answer = await fetch(rig + path, { method, body: JSON.stringify(body) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path}: ${text}`);
  return JSON.parse(text) as T;
}

export interface Fault {
  method?: string;
  path: string;
  query?: string;
  /** In milliseconds. */
  wait?: number;
  status?: number;
  refuse?: boolean;
  /** Whether the response is lost after the server has processed the request. */
  lose?: boolean;
  times?: number;
}

/** A server, its database, the console and the proxy, for one file of tests. */
export class Stage {
  private constructor(
    readonly id: string,
    /** URL of the proxy's console port. */
    readonly url: string,
    /** URL of the console itself, with /admin/. */
    readonly direct: string,
    readonly server: string,
    readonly admin: string,
    /** The port of a test service that real clients connect to, to check what they can reach. */
    readonly port: string,
    readonly online: number,
    /** URL of the identity provider, or empty. */
    readonly issuer: string,
  ) {}

  /** `host` is the host name in the server's URL, and `set` is further configuration of the server. */
  static async open(
    wish: { nodes?: number; tls?: boolean; provider?: boolean; host?: string; set?: Record<string, string> } = {},
  ): Promise<Stage> {
    const s = await ask<Record<string, string> & { online: number }>("/stage", { nodes: 0, tls: false, ...wish });
    return new Stage(
      s.id ?? "",
      s.console ?? "",
      s.direct ?? "",
      s.server ?? "",
      s.admin ?? "",
      s.port ?? "",
      s.online,
      s.issuer ?? "",
    );
  }

  private on<T>(what: string, body: unknown = {}): Promise<T> {
    return ask<T>(`/stage/${this.id}/${what}`, body);
  }
  close = () => ask(`/stage/${this.id}`, {}, "DELETE");
  cli = (...args: string[]) => this.on<string>("cli", args);
  faults = (...faults: Fault[]) =>
    this.on(
      "faults",
      faults.map((f) => ({ ...f, wait: (f.wait ?? 0) * 1e6 })),
    );
  cut = () => this.on("cut");
  serverIs = (on: boolean) => this.on("server", on);
  device = (name: string, online: boolean) => this.on("device", { name, online });
  /** Makes a device request approval to join. */
  knock = (name: string) => this.on("knock", name);
  /** Starts an SSH session between two devices of the stage. Resolves when somebody has approved or rejected it. */
  session = (from: string, to: string, user: string) => this.on<{ begins: boolean }>("session", { from, to, user });
  join = (name: string, key: string, ...args: string[]) => this.on<string[]>("join", { name, key, args });
  client = (name: string, ...args: string[]) =>
    this.on<{ stdout: string; stderr: string; code: number }>("client", { name, args });
  reach = (from: string, to: string) => this.on<{ reached: boolean; why: string }>("reach", { from, to });
  providerIs = (on: boolean) => this.on("provider", on);
  /** Makes a device request to join, and returns its login link. */
  login = (name: string) => this.on<string>("login", name);
  logs = () => this.on<{ server: string; console: string; nginx: string }>("logs");
  key = (...flags: string[]) => this.cli("apikeys", "create", ...flags);
}

/** Records the errors and the requests of a page. */
class Watch {
  complaints: string[] = [];
  foreign: string[] = [];
  requests: string[] = [];
  /** Requests that the page is waiting for: all except the event stream, which never ends. */
  pending = new Set<Request>();
  /** Errors that the test provokes. */
  allowed: RegExp[] = [];

  constructor(
    page: Page,
    readonly stage: Stage,
  ) {
    // Without a provider, pages load nothing from the server itself. Pages of the provider are not ours.
    const direct = new URL(stage.direct).origin;
    const signIn = stage.issuer !== "" || stage.server.includes("localhost");
    const origins = signIn ? [stage.url, direct, stage.server, stage.issuer].filter(Boolean) : [stage.url];
    const own = (r: Request) => origins.some((origin) => r.url().startsWith(`${origin}/`));
    const theirs = (r: Request) => stage.issuer !== "" && r.headers().referer?.startsWith(stage.issuer);
    page.on("console", (m) => {
      if (["error", "warning"].includes(m.type())) this.complaints.push(`${m.text()} (${m.location().url})`);
    });
    page.on("pageerror", (e) => this.complaints.push(`exception: ${e.message}`));
    page.on("request", (r) => {
      this.requests.push(r.url());
      if (/^https?:/.test(r.url()) && !own(r) && !theirs(r)) this.foreign.push(r.url());
      if (!r.url().includes("/api/v1/events")) this.pending.add(r);
    });
    page.on("requestfinished", (r) => this.pending.delete(r));
    page.on("requestfailed", (r) => this.pending.delete(r));
  }

  check() {
    const complaints = this.complaints.filter((c) => !this.allowed.some((a) => a.test(c)));
    this.complaints = [];
    expect(this.foreign, "requests to others").toEqual([]);
    expect(complaints, "complaints of the browser").toEqual([]);
  }
}

const watches = new Map<Page, Watch>();
let browser: Browser;
const contexts: BrowserContext[] = [];

/** Starts a browser for the file, and checks that no page logs errors or sends requests to other hosts. */
export function withBrowser() {
  beforeAll(async () => {
    browser = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell",
      args: ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"],
    });
  });
  afterEach(() => {
    const open = [...watches.values()];
    for (const [page] of [...watches]) if (page.isClosed()) watches.delete(page);
    for (const w of open) w.check();
  });
  afterAll(async () => {
    for (const w of watches.values()) w.check();
    watches.clear();
    await browser?.close();
  });
}

/** Makes the tests of a file depend on each other: when one fails, the later ones are skipped. */
export function asStory() {
  let broken = false;
  beforeEach((context) => {
    if (broken) context.skip();
  });
  afterEach((context) => {
    broken ||= context.task.result?.state === "fail";
  });
}

export interface Look {
  width?: number;
  height?: number;
  theme?: "light" | "dark";
  context?: BrowserContextOptions;
}

/** A window of a new browser profile. */
export async function newWindow(stage: Stage, look: Look = {}): Promise<Page> {
  const context = await browser.newContext({
    viewport: { width: look.width ?? 1440, height: look.height ?? 900 },
    colorScheme: look.theme ?? "light",
    ignoreHTTPSErrors: true,
    reducedMotion: "reduce",
    ...look.context,
  });
  context.setDefaultTimeout(90_000);
  contexts.push(context);
  return newTab(stage, context);
}

export async function newTab(stage: Stage, context: BrowserContext): Promise<Page> {
  const page = await context.newPage();
  watches.set(page, new Watch(page, stage));
  return page;
}

export function watch(page: Page): Watch {
  const found = watches.get(page);
  if (!found) throw new Error("the page is not watched");
  return found;
}

/** Allows errors that the test provokes. */
export const allow = (page: Page, ...complaints: RegExp[]) => watch(page).allowed.push(...complaints);

export const closeWindow = async (page: Page) => {
  const seen = watches.get(page);
  await page.context().close();
  watches.delete(page);
  seen?.check();
};

/** Fills in the login form at a path. */
export async function signIn(page: Page, stage: Stage, key = stage.admin, path = "/admin/") {
  await page.goto(stage.url + path);
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator("main h1").first().waitFor();
}

/** A window with a signed-in user. */
export async function signedIn(stage: Stage, path = "/admin/", look: Look = {}, key = stage.admin): Promise<Page> {
  const page = await newWindow(stage, look);
  await signIn(page, stage, key, path);
  return page;
}

/** Opens a page as if its address was typed. */
export async function go(page: Page, stage: Stage, path: string) {
  await page.goto(stage.url + path);
  await page.locator("main h1").first().waitFor();
}

/** Navigates from one page to another as a link does, without reloading the console. Resolves when the page has loaded. */
export async function navigate(page: Page, path: string) {
  await page.evaluate((href) => {
    const { __TSR_ROUTER__: router } = self as unknown as {
      __TSR_ROUTER__: { navigate(to: { href: string }): Promise<void> };
    };
    return router.navigate({ href });
  }, path);
}

/** Retries until the check passes. For conditions that no locator can wait for. */
export async function eventually(check: () => unknown, limit = 20_000) {
  await expect
    .poll(
      async () => {
        try {
          await check();
          return "";
        } catch (e) {
          return e instanceof Error ? e.message : String(e);
        }
      },
      { timeout: limit, interval: 100 },
    )
    .toBe("");
}

/** Prints a measurement among the test results. */
export const tell = (figure: string) => process.stdout.write(`${figure}\n`);

/**
 * With LOOKS=few, as in CI, axe.e2e.ts and dialogs.e2e.ts check fewer combinations of a window and a theme: wide
 * windows with the light theme, and phones with the dark one. Other files check no colours, unless they check both
 * themes.
 */
export const fewLooks = process.env.LOOKS === "few";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const colours = ["color-contrast", "link-in-text-block"];
const axeRules = {
  all: { runOnly: tags },
  /** The rules whose result depends on the theme. They take axe the longest. */
  colours: { runOnly: { type: "rule", values: colours } },
  structure: { runOnly: tags, rules: Object.fromEntries(colours.map((rule) => [rule, { enabled: false }])) },
};

/**
 * Returns what axe finds in the parts of a page that match a selector: violations of WCAG 2.2 AA and of axe's best
 * practices.
 */
export async function axe(
  page: Page,
  within = "html",
  check: keyof typeof axeRules = fewLooks ? "structure" : "all",
): Promise<string[]> {
  if (!(await page.evaluate(() => "axe" in window))) {
    const session = await page.context().newCDPSession(page);
    await session.send("Runtime.evaluate", { expression: axeSource });
    await session.detach();
  }
  // The effect of a policy is dimmed while it is out of date.
  await page.waitForFunction(() => !document.querySelector('[aria-busy="true"]:not(button)'));
  return page.evaluate(
    async ({ scope, rules }) => {
      // Content that is fading in, or changing its theme, has intermediate colours. Inherited colours change later.
      const moving = () =>
        document.getAnimations().filter((a) => a.effect?.getComputedTiming().iterations !== Number.POSITIVE_INFINITY);
      for (let round = 0; round < 100 && moving().length > 0; round++)
        await Promise.allSettled(moving().map((a) => a.finished));
      interface Finding {
        id: string;
        nodes: { target: string[]; failureSummary?: string }[];
      }
      const run = (
        window as unknown as { axe: { run(where: unknown, how: unknown): Promise<{ violations: Finding[] }> } }
      ).axe.run;
      const found = await run(scope, { ...rules, resultTypes: ["violations"] });
      return found.violations.flatMap((v) =>
        v.nodes.slice(0, 3).map((n) => `${v.id}: ${n.target.join(" ")}: ${n.failureSummary ?? ""}`),
      );
    },
    { scope: within, rules: axeRules[check] },
  );
}

/** Returns what axe finds in the parts of a page that match a selector, in both themes. */
export async function axeInBothThemes(page: Page, within = "html"): Promise<string[]> {
  const found = await axe(page, within, "all");
  return [...found, ...(await axeInDarkTheme(page, within, "colours"))];
}

/** Returns what axe finds in the parts of a page that match a selector, in the dark theme. */
export async function axeInDarkTheme(page: Page, within: string, check: keyof typeof axeRules): Promise<string[]> {
  await follow(page, "dark");
  const found = await axe(page, within, check);
  await follow(page, "light");
  return found.map((each) => `dark: ${each}`);
}

/** Changes the theme of the system, and waits until the page follows. The login page does so without a script. */
async function follow(page: Page, colorScheme: "light" | "dark") {
  await page.emulateMedia({ colorScheme });
  await page.waitForFunction((theme) => (document.documentElement.dataset.theme ?? theme) === theme, colorScheme);
}

/** Splits a key into its prefix, its ID and its secret, which may contain "_" itself. */
export function parts(key: string): { prefix: string; id: string; secret: string } {
  const [, kind = "", id = "", secret = ""] = /^([a-z]+)_([^_]+)_(.+)$/.exec(key) ?? [];
  if (secret.length < 20) throw new Error("this is no whole key");
  return { prefix: `${kind}_${id}`, id, secret };
}

/** Returns everything that a browser stores or shows of a page, to search it for secrets. */
export async function everything(page: Page): Promise<string> {
  const kept = await page.evaluate(async () => {
    const caches = [];
    for (const name of await window.caches.keys().catch(() => [])) {
      const cache = await window.caches.open(name);
      for (const request of await cache.keys()) caches.push(request.url, await (await cache.match(request))?.text());
    }
    return JSON.stringify([
      document.documentElement.outerHTML,
      { ...localStorage },
      { ...sessionStorage },
      document.cookie,
      location.href,
      history.state,
      caches,
      performance.getEntries().map((e) => e.name),
      [...document.querySelectorAll("input, textarea")].map((e) => (e as HTMLInputElement).value),
    ]);
  });
  return kept + watch(page).requests.join("\n");
}

/**
 * Holds POST requests to a URL in the browser until the returned function is called, so that a test does not depend on
 * timing.
 */
export async function hold(page: Page, address: string): Promise<() => Promise<void>> {
  let pass = () => {};
  const passed = new Promise<void>((done) => {
    pass = done;
  });
  await page.route(address, async (route) => {
    if (route.request().method() === "POST") await passed;
    await route.continue().catch(() => {}); // the page may have been left
  });
  return async () => {
    pass();
    await page.unroute(address);
  };
}
