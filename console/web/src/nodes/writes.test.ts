import { QueryClient } from "@tanstack/react-query";
import { afterEach, expect, test, vi } from "vitest";
import { ApiError, api, type Collection, keys, type Node } from "@/api";
import { addPage } from "@/api/collection";
import { writesOf } from "./writes";

afterEach(() => void vi.restoreAllMocks());

const node = (...approvedRoutes: string[]) => ({ id: "1", approvedRoutes }) as unknown as Node;

/** A server on which somebody else changes the node just before each of the first writes. */
function server(...others: string[]) {
  let approved: string[] = ["10.0.0.0/8"];
  let version = 0;
  const sent: { routes: string[]; ifMatch: string | null | undefined }[] = [];
  const change = (routes: string[]) => {
    approved = routes;
    version++;
  };
  vi.spyOn(api, "call").mockImplementation((async (method: string, _: string, options: never) => {
    const { body, ifMatch } = options as { body?: { routes: string[] }; ifMatch?: string | null };
    if (method !== "get" && body) {
      const other = others.shift();
      if (other) change([...approved, other]);
      sent.push({ routes: body.routes, ifMatch });
      if (ifMatch && ifMatch !== `"${version}"`)
        throw new ApiError(412, "", "", "", { current: node(...approved) as never });
      change(body.routes);
    }
    return { data: { node: node(...approved) }, revision: `${100 + version}`, etag: `"${version}"`, requestId: "" };
  }) as never);
  return { sent, routes: () => approved, change };
}

const cacheWith = (...routes: string[]) => {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, structuralSharing: false } } });
  client.setQueryData(keys.nodes, addPage(undefined, [node(...routes)], "100", true));
  return client;
};
const shown = (client: QueryClient) => client.getQueryData<Collection<Node>>(keys.nodes)?.items[0]?.approvedRoutes;

test("a route is switched at once, in the node as it is on the server", async () => {
  const at = server();
  at.change(["10.0.0.0/8", "10.2.0.0/16"]); // the page does not know about this change
  const client = cacheWith("10.0.0.0/8");
  const done = writesOf(client).switchRoute(node("10.0.0.0/8"), ["10.1.0.0/16"], true);
  expect(shown(client)).toEqual(["10.0.0.0/8", "10.1.0.0/16"]);
  await done;
  expect(at.sent[0]?.ifMatch).toBe('"1"');
  expect(at.routes()).toEqual(["10.0.0.0/8", "10.2.0.0/16", "10.1.0.0/16"]);
  expect(shown(client)).toEqual(at.routes());
});

test("what somebody else approves between reading and writing stays", async () => {
  const at = server("10.3.0.0/16", "10.4.0.0/16");
  const client = cacheWith("10.0.0.0/8");
  await writesOf(client).switchRoute(node("10.0.0.0/8"), ["10.0.0.0/8"], false);
  expect(at.routes()).toEqual(["10.3.0.0/16", "10.4.0.0/16"]);
  expect(at.sent.every(({ ifMatch }) => ifMatch)).toBe(true);
});

test("a switch that fails is where it was", async () => {
  const at = server("10.3.0.0/16", "10.4.0.0/16", "10.5.0.0/16");
  const client = cacheWith("10.0.0.0/8");
  const failed = writesOf(client).switchRoute(node("10.0.0.0/8"), ["10.1.0.0/16"], true);
  await expect(failed).rejects.toMatchObject({ status: 412 });
  expect(at.sent).toHaveLength(3);
  expect(shown(client)).toEqual(["10.0.0.0/8"]);
});

const owned = (id: string, user: string) => ({ id, user: { id: user } }) as unknown as Node;

/** A server that moves nodes, except those for which it refuses or does not respond. */
function movingServer(refused: readonly string[], away: readonly string[] = []) {
  const moved: [string, string][] = [];
  vi.spyOn(api, "call").mockImplementation((async (_method: string, _path: string, options: never) => {
    const { params, body } = options as { params: { nodeId: string }; body: { user: string } };
    if (away.includes(params.nodeId)) throw new ApiError(0, "", "No answer", "");
    if (refused.includes(params.nodeId)) throw new ApiError(409, "", "tagged", "");
    moved.push([params.nodeId, body.user]);
    return { data: { node: owned(params.nodeId, body.user) }, revision: "200", etag: null, requestId: "" };
  }) as never);
  return moved;
}

const cacheOf = (...nodes: Node[]) => {
  const client = new QueryClient();
  client.setQueryData(keys.nodes, addPage(undefined, nodes, "100", true));
  return client;
};

test("each node is moved by itself, and one that is refused keeps no other from moving", async () => {
  const nodes = Array.from({ length: 9 }, (_, i) => owned(String(i), "ana"));
  const moved = movingServer(["3"]);
  const failed = await writesOf(cacheOf(...nodes)).move(nodes, "bob");
  expect(failed.map(({ node, why }) => [node.id, why])).toEqual([["3", "tagged"]]);
  expect(moved.map(([id]) => id).sort()).toEqual(["0", "1", "2", "4", "5", "6", "7", "8"]);
});

test("without a server, the nodes that have not been tried are not tried", async () => {
  const nodes = Array.from({ length: 40 }, (_, i) => owned(String(i), "ana"));
  const away = nodes.map(({ id }) => id);
  movingServer([], away);
  const failed = await writesOf(cacheOf(...nodes)).move(nodes, "bob");
  expect(failed.map(({ node }) => node.id).sort()).toEqual(away.sort());
  expect(vi.mocked(api.call).mock.calls.length).toBeLessThanOrEqual(4);
});

test("nodes go back to the owner each had, except those that somebody else has moved since", async () => {
  const before = [owned("1", "ana"), owned("2", "chi"), owned("3", "ana")];
  const moved = movingServer([]);
  const client = cacheOf(owned("1", "bob"), owned("2", "bob"), owned("3", "eve"));
  expect(await writesOf(client).moveBack(before, "bob")).toEqual({ done: 2, failed: [] });
  expect(moved.sort()).toEqual([
    ["1", "ana"],
    ["2", "chi"],
  ]);
});
