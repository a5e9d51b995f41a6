import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import {
  type Answer,
  ApiError,
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

/** Calls that change nodes. They put the response into the cache; the stream would do it a moment later. */
export function useNodeWrites() {
  const client = useQueryClient();
  return useMemo(() => writesOf(client), [client]);
}

/** How many nodes are moved at the same time, because the API moves only one per call. */
const movesAtOnce = 4;

type BulkAction = "expire" | "delete" | "addTags" | "removeTags" | "setTags" | "approve" | "withdrawApproval";

export function writesOf(client: QueryClient) {
  const put = (node: Node, revision?: string) =>
    client.setQueryData<Collection<Node>>(keys.nodes, (all) => all && putItem(all, node, revision));
  const cached = (id: string) =>
    client.getQueryData<Collection<Node>>(keys.nodes)?.items.find((node) => node.id === id);

  /** Shows the node from a response, which has less presence information than the stream. */
  const shown = (node: Node, revision: string) => {
    const now = cached(node.id);
    put({ ...node, online: now?.online ?? node.online, lastSeen: now?.lastSeen ?? node.lastSeen }, revision);
    void client.invalidateQueries({ queryKey: keys.node(node.id) });
  };

  /** Shows the node as it will be, and as it was if the call fails. Returns the ETag after the write. */
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

  /** Applies an action to many nodes. Returns which ones failed and why. */
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

  /** Gives nodes to another user, by ID. Returns which ones failed and why. */
  const move = async (nodes: readonly Node[], user: string) => {
    const failed: { node: Node; why: string }[] = [];
    const queue = [...nodes];
    const work = async () => {
      for (let node = queue.shift(); node; node = queue.shift()) {
        try {
          const { data, revision } = await api.call("post", "/api/v1/node/{nodeId}/user", {
            params: { nodeId: node.id },
            body: { user },
            once: newRequestName(),
          });
          shown(data.node, revision);
        } catch (error) {
          if (!(error instanceof ApiError) || error.sessionEnded) throw error;
          // If the server is down, the other nodes would only fail one after the other.
          const also = error.unreachable ? queue.splice(0) : [];
          failed.push(...[node, ...also].map((each) => ({ node: each, why: error.detail })));
        }
      }
    };
    await Promise.all(Array.from({ length: movesAtOnce }, work));
    return failed;
  };

  return {
    bulk,
    move,

    /** Returns nodes to the owners they had, except those that somebody else has moved since. */
    moveBack: async (nodes: readonly Node[], from: string) => {
      const ours = nodes.filter((node) => cached(node.id)?.user?.id === from);
      const failed: Awaited<ReturnType<typeof move>> = [];
      for (const owner of new Set(ours.map((node) => node.user?.id ?? "")))
        failed.push(
          ...(await move(
            ours.filter((node) => node.user?.id === owner),
            owner,
          )),
        );
      return { done: ours.length - failed.length, failed };
    },

    /** Restores the tags that nodes had before a change. Returns how many succeeded and which ones failed. */
    takeTagsBack: async (changed: readonly TagChange[]) => {
      const together = takenBackBy(changed, cached);
      const failed = [];
      for (const nodes of together) failed.push(...(await bulk(nodes, "setTags", nodes[0]?.tags)));
      return { done: together.flat().length - failed.length, failed };
    },

    /** The current ETag of a node, for a dialog that opens: changes after that are a conflict. */
    etag: async (id: string) => (await client.fetchQuery({ ...nodeQuery(id), staleTime: 0 })).etag,

    /** Saves a field of a node with the call for it. Returns the ETag after the write. */
    save: <M extends keyof Node>(
      node: Node,
      member: M,
      value: Node[M],
      call: (value: Node[M], ifMatch: string | null | undefined) => Promise<Answer<{ node: Node }>>,
      ifMatch?: IfMatch,
    ) => optimistic(node, { [member]: value } as Partial<Node>, async () => call(value, await ifMatch)),

    /** Approves or disables routes of a node, and keeps what somebody else switches in the meantime. */
    switchRoute: (node: Node, prefixes: readonly string[], on: boolean) => {
      const shows = cached(node.id) ?? node;
      return optimistic(shows, { approvedRoutes: withRoute(shows.approvedRoutes, prefixes, on) }, async () => {
        // The call replaces all routes, so it starts from the node's current routes and is conditional on its ETag.
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

    /** Sets when the key of a node expires: a time, or null for never. */
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
