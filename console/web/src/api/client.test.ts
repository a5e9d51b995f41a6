import { expect, test, vi } from "vitest";
import { ApiError, Client, newRequestName, urlOf } from "./client";

function answering(status: number, body: unknown, headers: Record<string, string> = {}, isAttended = () => false) {
  const fetch = vi.fn(
    async (_url: string, _init: RequestInit) => new Response(JSON.stringify(body), { status, headers }),
  );
  const onSessionEnded = vi.fn();
  const client = new Client({ fetch: fetch as unknown as typeof globalThis.fetch, isAttended, onSessionEnded });
  client.goOn("word", "1");
  const sent = (n = 0) => ({
    url: fetch.mock.calls[n]?.[0],
    ...fetch.mock.calls[n]?.[1],
    headers: fetch.mock.calls[n]?.[1].headers as Record<string, string>,
  });
  return { client, sent, onSessionEnded };
}

test("addresses are filled in and escaped", () => {
  expect(urlOf("/api/v1/node/{nodeId}/rename/{newName}", { nodeId: "1", newName: "../a b" })).toBe(
    "/admin/api/v1/node/1/rename/..%2Fa%20b",
  );
  expect(urlOf("/api/v1/node", undefined, { limit: 5, cursor: undefined, online: false })).toBe(
    "/admin/api/v1/node?limit=5&online=false",
  );
});

test("writes carry the CSRF word, the condition and the name of the request", async () => {
  const { client, sent } = answering(200, {});
  await client.call("post", "/api/v1/node/{nodeId}/tags", {
    params: { nodeId: "1" },
    body: { tags: ["tag:a"] },
    ifMatch: '"x"',
    once: "n",
  });
  expect(sent()).toMatchObject({ method: "POST", body: '{"tags":["tag:a"]}' });
  expect(sent().headers).toMatchObject({
    "X-CSRF": "word",
    "If-Match": '"x"',
    "Idempotency-Key": "n",
    "Content-Type": "application/json",
  });
});

test("reads carry none of that, but ask for what was written before", async () => {
  const { client, sent } = answering(200, { nodes: [] }, { "Mesh-Revision": "12", ETag: '"y"' });
  await client.get("/api/v1/node");
  await client.call("post", "/api/v1/node/bulk", { body: { ids: [], action: "expire" } });
  const answer = await client.call("get", "/api/v1/node", {});
  expect(sent(0).headers).toEqual({ Accept: "application/json" });
  expect(sent(2).headers["Mesh-Min-Revision"]).toBe("12");
  expect(answer).toMatchObject({ etag: '"y"', revision: "12" });
});

test("only what is asked while somebody uses the page says so", async () => {
  let used = true;
  const { client, sent } = answering(200, {}, {}, () => used);
  await client.get("/api/v1/node");
  used = false;
  await client.get("/api/v1/node");
  expect(sent(0).headers).toEqual({ Accept: "application/json", "X-Attended": "1" });
  expect(sent(1).headers).toEqual({ Accept: "application/json" });
});

test("a problem becomes an error with its words and the request id", async () => {
  const problem = { title: "Conflict", detail: "there is another", status: 412, current: { node: {} } };
  const { client, onSessionEnded } = answering(412, problem, { "X-Request-Id": "R1" });
  const error = await client.get("/api/v1/node").catch((e) => e);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({
    status: 412,
    title: "Conflict",
    message: "there is another",
    requestId: "R1",
    stale: true,
    unreachable: false,
  });
  expect(onSessionEnded).not.toHaveBeenCalled();
});

test("the end of the session is told once", async () => {
  const { client, onSessionEnded } = answering(401, { type: "session_ended" });
  await client.get("/api/v1/node").catch(() => {});
  await client.get("/api/v1/node").catch(() => {});
  expect(onSessionEnded).toHaveBeenCalledOnce();
});

test("no answer is an error without status, a call that was given up is none of ours", async () => {
  const refuse = () => Promise.reject(new TypeError("failed to fetch"));
  const client = new Client({ fetch: refuse, isAttended: () => false, onSessionEnded: () => {} });
  expect(await client.get("/api/v1/node").catch((e) => e)).toMatchObject({ status: 0, unreachable: true });
  const given = AbortSignal.abort();
  expect(await client.get("/api/v1/node", { signal: given }).catch((e) => e)).toBeInstanceOf(TypeError);
});

test("names of requests differ", () => expect(newRequestName()).not.toBe(newRequestName()));

test("an error has the ETag of what is not there", async () => {
  const { client } = answering(404, {}, { ETag: '"0"' });
  expect(await client.get("/api/v1/policy").catch((e) => e)).toMatchObject({ status: 404, etag: '"0"' });
});

test("a write that another tab's session of the same key has overtaken is sent once more, with the new word", async () => {
  const words: string[] = [];
  const fetch = async (_: unknown, init: RequestInit) => {
    const word = new Headers(init.headers).get("X-CSRF") ?? "";
    words.push(word);
    return word === "new"
      ? new Response("{}")
      : new Response(JSON.stringify({ type: "request_refused" }), { status: 403 });
  };
  const client = new Client({
    fetch: fetch as unknown as typeof globalThis.fetch,
    isAttended: () => false,
    onSessionEnded: () => {},
  });
  const expire = () => client.call("post", "/api/v1/node/bulk", { body: { ids: [], action: "expire" } });
  client.goOn("old", "1");
  await expect(expire()).rejects.toMatchObject({ status: 403 });
  client.renew = async () => {};
  await expect(expire()).rejects.toMatchObject({ status: 403 });
  expect(words).toEqual(["old", "old"]);
  client.renew = async () => client.goOn("new", "1");
  await expire();
  expect(words).toEqual(["old", "old", "old", "new"]);
  // Of two concurrent writes, the second may be refused after the first has already renewed the session with the other
  // key.
  client.goOn("old", "1");
  let asked = 0;
  client.renew = async () => {
    if (asked++ === 0) client.goOn("new", "2");
    else await new Promise((done) => setTimeout(done));
  };
  const refused = { detail: expect.stringContaining("different API key") };
  await Promise.all([expect(expire()).rejects.toMatchObject(refused), expect(expire()).rejects.toMatchObject(refused)]);
  expect(words.slice(4)).toEqual(["old", "old"]);
  await expire();
});
