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
