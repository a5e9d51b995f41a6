import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import {
  type Answer,
  api,
  type Collection,
  currentOf,
  type IfMatch,
  keys,
  type Node,
  newRequestName,
  nodeQuery,
  takenBack,
} from "@/api";
import { putItem } from "@/api/collection";
import { withRoute } from "./routes";
import { type TagChange, takenBackBy } from "./tagging";

/** Calls that change nodes. They put what the answer shows into the cache; the stream would a moment later. */
export function useNodeWrites() {
  const client = useQueryClient();
  return useMemo(() => writesOf(client), [client]);
}

type BulkAction = "expire" | "delete" | "addTags" | "removeTags" | "setTags";

export function writesOf(client: QueryClient) {
  const put = (node: Node, revision?: string) =>
    client.setQueryData<Collection<Node>>(keys.nodes, (all) => all && putItem(all, node, revision));
  const cached = (id: string) =>
    client.getQueryData<Collection<Node>>(keys.nodes)?.items.find((node) => node.id === id);

  /** Shows the node of an answer, which knows less of presence than the stream. */
  const shown = (node: Node, revision: string) => {
    const now = cached(node.id);
    put({ ...node, online: now?.online ?? node.online, lastSeen: now?.lastSeen ?? node.lastSeen }, revision);
    void client.invalidateQueries({ queryKey: keys.node(node.id) });
  };

  /** Shows the node as it will be, and as it was if the call fails. It gives the ETag of what it left. */
  const optimistic = async (
    node: Node,
    expected: Partial<Node>,
    call: () => Promise<Answer<{ node: Node }>>,
  ): Promise<string | null> => {
    const before = cached(node.id) ?? node;
    put({ ...before, ...expected });
    try {
      const { data, revision, etag } = await call();
      shown(data.node, revision);
      return etag;
    } catch (error) {
      const now = cached(node.id);
      if (now) put(takenBack(now, expected, before));
      throw error;
    }
  };

  /** The same to many; the answer says what became of each. */
  const bulk = async (nodes: readonly Node[], action: BulkAction, tags?: string[]) => {
    const failed: { node: Node; why: string }[] = [];
    for (let from = 0; from < nodes.length; from += 1000) {
      const part = nodes.slice(from, from + 1000);
      const { data } = await api.call("post", "/api/v1/node/bulk", {
        body: { ids: part.map((node) => node.id), action, tags },
        once: newRequestName(),
      });
      data.results.forEach((result, i) => {
        const node = part[i];
        if (!result.ok && node) failed.push({ node, why: result.error?.message ?? "" });
      });
    }
    return failed;
  };

  return {
    bulk,

    /** Gives nodes the tags that they had before a change, and says of how many and of which it did not. */
    takeTagsBack: async (changed: readonly TagChange[]) => {
      const together = takenBackBy(changed, cached);
      const failed = [];
      for (const nodes of together) failed.push(...(await bulk(nodes, "setTags", nodes[0]?.tags)));
      return { done: together.flat().length - failed.length, failed };
    },

    /** The ETag of a node as it is now, for a dialogue that opens: what changes after that is a conflict. */
    etag: async (id: string) => (await client.fetchQuery({ ...nodeQuery(id), staleTime: 0 })).etag,

    /** Saves a member of a node by the call for it. It gives the ETag of what it left. */
    save: <M extends keyof Node>(
      node: Node,
      member: M,
      value: Node[M],
      call: (value: Node[M], ifMatch: string | null | undefined) => Promise<Answer<{ node: Node }>>,
      ifMatch?: IfMatch,
    ) => optimistic(node, { [member]: value } as Partial<Node>, async () => call(value, await ifMatch)),

    /** Turns routes of a node on or off, and leaves what somebody else switches meanwhile. */
    switchRoute: (node: Node, prefixes: readonly string[], on: boolean) => {
      const shows = cached(node.id) ?? node;
      return optimistic(shows, { approvedRoutes: withRoute(shows.approvedRoutes, prefixes, on) }, async () => {
        // All routes are sent, so they are those of the node as it is, and only if it still is so.
        for (let tries = 3; ; tries--) {
          const { data, etag } = await client.fetchQuery({ ...nodeQuery(node.id), staleTime: 0 });
          const routes = withRoute(data.node.approvedRoutes, prefixes, on);
          try {
            return await api.call("post", "/api/v1/node/{nodeId}/approve_routes", {
              params: { nodeId: node.id },
              body: { routes },
              ifMatch: etag,
            });
          } catch (error) {
            if (tries === 1 || !currentOf(error)) throw error;
          }
        }
      });
    },

    /** When the key of a node ends: a moment, or null for never. */
    setExpiry: async (node: Node, expiry: string | null, ifMatch?: IfMatch) => {
      const { data, revision } = await api.call("post", "/api/v1/node/{nodeId}/expire", {
        params: { nodeId: node.id },
        body: expiry ? { expiry } : { disableExpiry: true },
        ifMatch: await ifMatch,
      });
      shown(data.node, revision);
    },
  };
}
