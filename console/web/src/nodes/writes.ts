import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { api, type Collection, keys, type Node, newRequestName, nodeQuery } from "@/api";
import { putItem } from "@/api/collection";

/** Calls that change nodes. They put what the answer shows into the cache; the stream would a moment later. */
export function useNodeWrites() {
  const client = useQueryClient();
  return useMemo(() => writesOf(client), [client]);
}

type BulkAction = "expire" | "delete" | "addTags" | "removeTags" | "setTags" | "approveRoutes";

function writesOf(client: QueryClient) {
  const put = (node: Node, revision?: string) =>
    client.setQueryData<Collection<Node>>(keys.nodes, (all) => all && putItem(all, node, revision));
  const cached = (id: string) =>
    client.getQueryData<Collection<Node>>(keys.nodes)?.items.find((node) => node.id === id);

  /** Shows the node as it will be, and as it was if the call fails. */
  const optimistic = async (
    node: Node,
    expected: Partial<Node>,
    call: () => Promise<{ data: { node: Node }; revision: string }>,
  ) => {
    const before = cached(node.id) ?? node;
    const shown = { ...before, ...expected };
    put(shown);
    try {
      const { data, revision } = await call();
      const now = cached(node.id);
      put({ ...data.node, online: now?.online ?? node.online, lastSeen: now?.lastSeen ?? node.lastSeen }, revision);
      void client.invalidateQueries({ queryKey: keys.node(node.id) });
    } catch (error) {
      // What the stream has said meanwhile stays.
      if (cached(node.id) === shown) put(before);
      throw error;
    }
  };

  return {
    /** The ETag of a node as it is now, for a dialogue that opens: what changes after that is a conflict. */
    etag: async (node: Node) => (await client.fetchQuery({ ...nodeQuery(node.id), staleTime: 0 })).etag,

    rename: (node: Node, name: string, ifMatch?: string | null) =>
      optimistic(node, { givenName: name }, () =>
        api.call("post", "/api/v1/node/{nodeId}/rename/{newName}", {
          params: { nodeId: node.id, newName: name },
          ifMatch,
        }),
      ),

    setTags: (node: Node, tags: string[], ifMatch?: string | null) =>
      optimistic(node, { tags }, () =>
        api.call("post", "/api/v1/node/{nodeId}/tags", { params: { nodeId: node.id }, body: { tags }, ifMatch }),
      ),

    /** The same to many; the answer says what became of each. */
    bulk: async (nodes: readonly Node[], action: BulkAction, tags?: string[]) => {
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
    },
  };
}
