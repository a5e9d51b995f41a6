import type { Page, Request } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  allow,
  closeWindow,
  eventually,
  everything,
  newTab,
  newWindow,
  parts,
  Stage,
  signedIn,
  signIn,
  withBrowser,
} from "./rig";

withBrowser();
let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(() => stage.close());

const refused = /the server responded with a status of/;

/** Sends a request as a script would, with the cookies of a window. */
async function call(
  page: Page,
  path: string,
  init: { method?: string; headers?: Record<string, string>; body?: string },
) {
  const cookies = await page.context().cookies(stage.url + path);
  const cookie = cookies.map((c) => `${c.name}=${c.value}`).join("; ");
  return fetch(stage.url + path, { redirect: "manual", ...init, headers: { cookie, ...init.headers } });
}

describe("the login", () => {
  test("shows the form at the requested address, and continues there", async () => {
    const page = await newWindow(stage);
    const answer = await page.goto(`${stage.url}/admin/nodes?q=is:online`);
    expect(answer?.status()).toBe(200);
    await page.getByLabel("API key").fill(stage.admin);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Nodes", level: 1 }).waitFor();
    expect(page.url()).toBe(`${stage.url}/admin/nodes?q=is:online`);
    await closeWindow(page);
  });

  test("gives the same answer to an unknown key and to an invalid one", async () => {
    const page = await newWindow(stage);
    allow(page, refused);
    const tell = [];
    for (const key of [`${stage.admin.slice(0, -4)}AAAA`, "hunter2"]) {
      await page.goto(`${stage.url}/admin/`);
      await page.getByLabel("API key").fill(key);
      const [answer] = await Promise.all([
        page.waitForResponse((r) => r.request().method() === "POST"),
        page.getByRole("button", { name: "Sign in" }).click(),
      ]);
      tell.push([answer.status(), await page.getByRole("alert").textContent()]);
    }
    expect(tell).toEqual([
      [401, "Authentication failed: invalid API key"],
      [401, "Authentication failed: invalid API key"],
    ]);
    await closeWindow(page);
  });

  test("slows down repeated guesses, and says for how long", async () => {
    const own = await Stage.open();
    const page = await newWindow(own);
    allow(page, refused);
    await page.goto(`${own.url}/admin/`);
    for (let tries = 0; tries < 6; tries++) {
      await page.getByLabel("API key").fill(`guess-${tries}`);
      await Promise.all([
        page.waitForResponse((r) => r.request().method() === "POST"),
        page.getByRole("button", { name: "Sign in" }).click(),
      ]);
    }
    await page.getByText(/Too many attempts\. Try again in \d+ seconds?\./).waitFor();
    await page.getByLabel("API key").fill(own.admin);
    const [answer] = await Promise.all([
      page.waitForResponse((r) => r.request().method() === "POST"),
      page.getByRole("button", { name: "Sign in" }).click(),
    ]);
    expect(answer.status()).toBe(429);
    expect(Number(answer.headers()["retry-after"])).toBeGreaterThan(0);
    await closeWindow(page);
    await own.close();
  });

  test("says that the server is unreachable, and works when it is back", async () => {
    const page = await newWindow(stage);
    allow(page, refused);
    await page.goto(`${stage.url}/admin/`);
    await stage.serverIs(false);
    await page.getByLabel("API key").fill(stage.admin);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText(/is not responding\. Try again in a moment\./).waitFor();
    await stage.serverIs(true);
    await signIn(page, stage);
    await closeWindow(page);
  });

  test("works without JavaScript", async () => {
    const page = await newWindow(stage, { context: { javaScriptEnabled: false } });
    await page.goto(`${stage.url}/admin/`);
    await page.getByLabel("API key").fill(stage.admin);
    const [answer] = await Promise.all([
      page.waitForResponse((r) => r.request().method() === "POST"),
      page.getByRole("button", { name: "Sign in" }).click(),
    ]);
    expect(answer.status()).toBe(303);
    await closeWindow(page);
  });
});

describe("a session", () => {
  test("is a new one after each login", async () => {
    const page = await newWindow(stage);
    const session = async () => (await page.context().cookies()).find((c) => c.name === "fairlead_session")?.value;
    await page
      .context()
      .addCookies([{ name: "fairlead_session", value: "planted-by-somebody", domain: "127.0.0.1", path: "/admin/" }]);
    await signIn(page, stage);
    const first = await session();
    await page.getByRole("button", { name: /Signed in with this API key/ }).click();
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await page.getByLabel("API key").waitFor();
    expect(await session()).toBeUndefined();
    await signIn(page, stage);
    expect(new Set(["planted-by-somebody", first, await session()]).size).toBe(3);
    await closeWindow(page);
  });

  test("is in a cookie that scripts and other sites cannot read", async () => {
    const page = await signedIn(stage);
    const cookie = (await page.context().cookies()).find((c) => c.name === "fairlead_session");
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Lax", path: "/admin/", secure: false });
    expect(await page.evaluate(() => document.cookie)).toBe("");
    await closeWindow(page);
  });

  test("over TLS has a cookie that is sent only over TLS", async () => {
    const own = await Stage.open({ tls: true });
    const page = await signedIn(own);
    const cookies = await page.context().cookies();
    expect(cookies.map((c) => c.name).sort()).toEqual(["__Secure-fairlead_known", "__Secure-fairlead_session"]);
    for (const cookie of cookies)
      expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Lax", path: "/admin/", secure: true });
    const answer = await page.request.get(`${own.url}/admin/`);
    expect(answer.headers()["strict-transport-security"]).toMatch(/max-age=\d{8}/);
    await closeWindow(page);
    await own.close();
  });

  test("ends within 15 seconds after its key is revoked elsewhere", async () => {
    const key = await stage.key();
    const first = await signedIn(stage, "/admin/nodes", {}, key);
    const second = await newTab(stage, first.context());
    allow(first, refused);
    allow(second, refused);
    await second.goto(`${stage.url}/admin/keys`);
    await second.locator("main h1").waitFor();
    const began = Date.now();
    await stage.cli("apikeys", "expire", "--prefix", parts(key).prefix);
    for (const page of [first, second])
      await page.getByText("You were signed out because this key was revoked.").waitFor({ timeout: 15_000 });
    expect(Date.now() - began).toBeLessThan(15_000);
    await closeWindow(first);
  });

  test("is extended by somebody who uses a page, and not by the page itself", async () => {
    const page = await newWindow(stage);
    await page.clock.install();
    await signIn(page, stage, stage.admin, "/admin/nodes");
    const polled = () => page.waitForRequest(/\/api\/v1\/auth\/pending$/);
    const isAttended = async (request: Promise<Request>) => (await request).headers()["x-attended"] !== undefined;
    let asked = polled();
    await page.clock.fastForward(16_000);
    expect(await isAttended(asked)).toBe(true);
    await page.clock.fastForward(11 * 60_000);
    asked = polled();
    await page.clock.fastForward(16_000);
    expect(await isAttended(asked)).toBe(false);
    await page.keyboard.press("j");
    asked = polled();
    await page.clock.fastForward(16_000);
    expect(await isAttended(asked)).toBe(true);
    await closeWindow(page);
  });

  test("never has its key in a page, storage, URL, log or cache", async () => {
    const page = await signedIn(stage);
    for (const path of ["nodes", "keys", "settings/api-keys", "policy"]) {
      await page.goto(`${stage.url}/admin/${path}`);
      await page.locator("main h1").first().waitFor();
      expect(await everything(page)).not.toContain(stage.admin);
      expect(await everything(page)).not.toContain(parts(stage.admin).secret);
    }
    const logs = await stage.logs();
    expect(JSON.stringify(logs)).not.toContain(parts(stage.admin).secret);
    await closeWindow(page);
  });
});

describe("a write", () => {
  const path = "/admin/api/v1/user";
  const body = JSON.stringify({ name: "mallory" });

  test("needs the right method, content type, token and origin", async () => {
    const page = await signedIn(stage);
    const csrf = (await page.locator("meta[name=csrf]").getAttribute("content")) ?? "";
    expect(csrf).not.toBe("");
    const good = {
      "content-type": "application/json",
      "x-csrf": csrf,
      "sec-fetch-site": "same-origin",
      origin: stage.url,
    };
    const without = (name: keyof typeof good, instead?: string) => {
      const headers: Record<string, string> = { ...good };
      delete headers[name];
      return instead === undefined ? headers : { ...headers, [name]: instead };
    };
    const tried = {
      "no token": without("x-csrf"),
      "a wrong token": without("x-csrf", "x".repeat(csrf.length)),
      "a form": without("content-type", "application/x-www-form-urlencoded"),
      "no type": without("content-type", "text/plain"),
      "another site": without("sec-fetch-site", "cross-site"),
      "a sibling": without("sec-fetch-site", "same-site"),
      "another origin": { ...without("sec-fetch-site"), origin: "http://evil.example" },
    };
    const answers: Record<string, number> = {};
    for (const [name, headers] of Object.entries(tried))
      answers[name] = (await call(page, path, { method: "POST", headers, body })).status;
    expect(answers).toEqual(Object.fromEntries(Object.keys(tried).map((name) => [name, 403])));
    expect(await stage.cli("users", "list", "--output", "json")).not.toContain("mallory");
    expect((await call(page, path, { method: "POST", headers: good, body })).status).toBe(200);
    expect(await stage.cli("users", "list", "--output", "json")).toContain("mallory");
    await closeWindow(page);
  });

  test("with the token of another session is rejected", async () => {
    const [mine, theirs] = [await signedIn(stage), await signedIn(stage, "/admin/", {}, await stage.key())];
    const csrf = (await theirs.locator("meta[name=csrf]").getAttribute("content")) ?? "";
    const headers = { "content-type": "application/json", "x-csrf": csrf, "sec-fetch-site": "same-origin" };
    expect((await call(mine, path, { method: "POST", headers, body })).status).toBe(403);
    await closeWindow(mine);
    await closeWindow(theirs);
  });
});

describe("the API of the console", () => {
  test("has only listed paths, whatever the encoding", async () => {
    const page = await signedIn(stage);
    const headers = { "sec-fetch-site": "same-origin" };
    const tricks = [
      "/admin/api/v1/debug/profile",
      "/admin/api/v1/openapi.yaml",
      "/admin/api/v1/node/1%2f..%2f..%2fapikey",
      "/admin/api/v1/node/..%2fapikey",
      "/admin/api/v1/node/%2e%2e/apikey/../../debug/digest",
      "/admin/api/v1//debug/digest",
      "/admin/api/v1/node/1;x",
      "/admin/api/v1/node/1%00",
      "/admin/api/v1/metrics",
      "/admin/api/metrics",
      "/admin/api/v2/node",
      "/admin/assets/../api/v1/debug/digest",
      "/admin/assets/%2e%2e/index.html",
      "/admin/assets/..%2findex.html",
    ];
    const answers: Record<string, number> = {};
    for (const path of tricks) answers[path] = (await call(page, path, { headers })).status;
    for (const [path, status] of Object.entries(answers))
      expect([400, 404, 405], `${path}: ${status}`).toContain(status);
    await closeWindow(page);
  });

  test("answers 404 to unknown paths", async () => {
    for (const path of ["/nowhere-at-all", "/admin/favicon.ico"]) {
      expect((await fetch(new URL(path, stage.direct))).status).toBe(404);
      await eventually(async () => {
        const { console } = await stage.logs();
        expect(console.split(`No route matches URL \\"${path}\\"`).length - 1).toBe(1);
      });
    }
  });

  test("has the paths of the specification", async () => {
    const status = async (path: string) => (await fetch(stage.url + path, { redirect: "manual" })).status;
    expect([await status("/"), await status("/admin"), await status("/admin/"), await status("/health")]).toEqual([
      404, 404, 200, 200,
    ]);
    expect(await (await fetch(`${stage.url}/health`)).json()).toMatchObject({
      status: "pass",
      coordinator: "reachable",
    });
    const page = await signedIn(stage);
    allow(page, refused);
    const answer = await page.goto(`${stage.url}/admin/there-is-no-such-page`);
    expect(answer?.status()).toBe(404);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await eventually(async () => expect(await page.locator("main").getByRole("heading").count()).toBe(1));
    await closeWindow(page);
  });
});

describe("the browser", () => {
  test("may run only the console's own code", async () => {
    const page = await signedIn(stage);
    const answers = [await page.goto(`${stage.url}/admin/`), await page.goto(`${stage.url}/admin/`)];
    const nonces = [];
    for (const answer of answers) {
      const headers = answer?.headers() ?? {};
      const csp = headers["content-security-policy"] ?? "";
      for (const part of [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
      ])
        expect(csp).toContain(part);
      expect(csp).not.toMatch(/unsafe|\*|https?:/);
      nonces.push(/script-src 'self' 'nonce-([\w-]{22})'/.exec(csp)?.[1]);
      expect(headers).toMatchObject({
        "x-frame-options": "DENY",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
      });
      expect(headers["permissions-policy"]).toContain("camera=()");
      expect(Object.keys(headers).filter((h) => h.startsWith("access-control-"))).toEqual([]);
    }
    expect(new Set(nonces).size).toBe(2);
    await closeWindow(page);
  });

  test("runs no script that was injected into the page", async () => {
    const page = await signedIn(stage);
    allow(page, /Content Security Policy|Trusted/);
    const ran = await page.evaluate(async () => {
      const w = window as unknown as { ran?: string[] };
      w.ran = [];
      const attempts: (() => void)[] = [
        () => {
          const s = document.createElement("script");
          s.textContent = "window.ran.push('inline')";
          document.body.append(s);
        },
        () => document.body.insertAdjacentHTML("beforeend", "<img src=x onerror=\"window.ran.push('handler')\">"),
        () => void new Function("window.ran.push('function')")(),
        () => void setTimeout("window.ran.push('timer')" as unknown as TimerHandler, 0),
      ];
      // Run them from a timer: code that the test itself evaluates is not subject to the content security policy.
      for (const attempt of attempts) setTimeout(attempt);
      await new Promise((done) => setTimeout(done, 300));
      return w.ran;
    });
    expect(ran).toEqual([]);
    await closeWindow(page);
  });

  test("shows the console in no frame", async () => {
    const page = await newWindow(stage);
    allow(page, /frame|X-Frame-Options/i);
    await page.route(`${stage.url}/evil`, (route) =>
      route.fulfill({ contentType: "text/html", body: `<iframe src="${stage.url}/admin/"></iframe>` }),
    );
    await page.goto(`${stage.url}/evil`);
    await eventually(() => expect(page.frames().length).toBe(2));
    expect(
      await page
        .frames()[1]
        ?.locator("input")
        .count()
        .catch(() => 0),
    ).toBe(0);
    await closeWindow(page);
  });
});

describe("the console", () => {
  test("says that the server is unreachable, and recovers by itself", async () => {
    const page = await signedIn(stage, "/admin/users");
    allow(page, refused, /ERR_/);
    await page.getByRole("rowheader", { name: "mallory" }).first().waitFor();
    await stage.serverIs(false);
    await page.getByText(/Server unreachable since/).waitFor({ timeout: 30_000 });
    await eventually(async () => expect(await page.getByText("mallory").count()).toBeGreaterThan(0));
    expect(await (await fetch(`${stage.url}/health`)).json()).toMatchObject({
      status: "pass",
      coordinator: "unreachable",
    });
    await stage.serverIs(true);
    await page.getByText(/Server unreachable since/).waitFor({ state: "detached", timeout: 40_000 });
    await stage.cli("users", "create", "trent");
    await page.getByText("trent").first().waitFor();
    await closeWindow(page);
  });
});
