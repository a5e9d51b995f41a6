import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { api, type Collection, type IfMatch, keys, newRequestName, takenBack, type User, useSession } from "@/api";
import { putItem } from "@/api/collection";
import { useWrites } from "@/ui";

/** Whether a control for what only administrators may change about users is offered. */
export function useAdminWrites() {
  const writes = useWrites("users:write");
  const { role } = useSession().key;
  return { ...writes, offered: writes.offered && role === "admin" };
}

/** Whether a control that gives people access is offered: to administrators whose access has no scopes. */
export function useAccessWrites() {
  const writes = useAdminWrites();
  const { scopes } = useSession().key;
  return { ...writes, offered: writes.offered && scopes.length === 0 };
}

/** Calls that change users. They put the response into the cache; the stream would do it a moment later. */
export function useUserWrites() {
  const client = useQueryClient();
  return useMemo(() => writesOf(client), [client]);
}

export interface NewUser {
  name: string;
  displayName?: string;
  email?: string;
}

/** What can be decided about several users at once. Keeping the access of users dismisses their held suspensions. */
export type Decision = "approve" | "suspend" | "keep";

/** The request that deletes users. */
export const removal = (users: readonly User[], deleteTagged: boolean) => ({
  ids: users.map((user) => user.id),
  action: "delete" as const,
  ...(deleteTagged && { deleteTagged }),
});

function writesOf(client: QueryClient) {
  const put = (user: User, revision?: string) =>
    client.setQueryData<Collection<User>>(keys.users, (all) => all && putItem(all, user, revision));
  const cached = (id: string) =>
    client.getQueryData<Collection<User>>(keys.users)?.items.find((user) => user.id === id);

  const writes = {
    create: async (user: NewUser, once: string): Promise<User> => {
      const { data, revision } = await api.call("post", "/api/v1/user", { body: user, once });
      put(data.user, revision);
      return data.user;
    },

    /** The current ETag of a user: changes after that are a conflict. */
    etag: async (user: User) => (await api.call("get", "/api/v1/user/{id}", { params: { id: user.id } })).etag,

    /** How many nodes a user owns now. */
    nodeCount: async (user: User) => (await api.get("/api/v1/user/{id}", { params: { id: user.id } })).user.nodeCount,

    /** Shows the new name, and the old one again if the call fails. Returns the ETag after the write. */
    rename: async (user: User, name: string, ifMatch?: IfMatch) => {
      const before = cached(user.id) ?? user;
      put({ ...before, name });
      try {
        const { data, revision, etag } = await api.call("post", "/api/v1/user/{id}/rename/{newName}", {
          params: { id: user.id, newName: name },
          ifMatch: await ifMatch,
        });
        put(data.user, revision);
        // Nodes and keys include the name of their owner.
        void client.invalidateQueries({ queryKey: keys.nodes });
        void client.invalidateQueries({ queryKey: keys.preAuthKeys });
        return etag;
      } catch (error) {
        const now = cached(user.id);
        if (now) put(takenBack(now, { name }, before));
        throw error;
      }
    },

    approve: async (user: User) => {
      const { data, revision } = await api.call("post", "/api/v1/user/{id}/approve", {
        params: { id: user.id },
        once: newRequestName(),
      });
      put(data.user, revision);
    },

    /** Assigns a role, or removes the assignment. Returns the user. */
    setRole: async (user: User, role: string): Promise<User> => {
      const { data, revision } = await api.call("put", "/api/v1/user/{id}/role", {
        params: { id: user.id },
        body: { role },
        once: newRequestName(),
      });
      put(data.user, revision);
      return data.user;
    },

    /** Suspends a user. Returns how many tagged nodes that the user added keep their access. */
    suspend: async (user: User, deleteTagged: boolean): Promise<number> => {
      const { data, revision } = await api.call("post", "/api/v1/user/{id}/suspend", {
        params: { id: user.id },
        query: { deleteTagged },
        once: newRequestName(),
      });
      put(data.user, revision);
      return deleteTagged ? 0 : (data.taggedNodes?.length ?? 0);
    },

    restore: async (user: User) => {
      const { data, revision } = await api.call("post", "/api/v1/user/{id}/restore", {
        params: { id: user.id },
        once: newRequestName(),
      });
      put(data.user, revision);
    },

    /** Deletes users with everything they own. Returns which failed and why, and how many tagged nodes stay. */
    remove: async (users: readonly User[], deleteTagged: boolean) => {
      const failed: { user: User; why: string }[] = [];
      let kept = 0;
      for (let from = 0; from < users.length; from += 1000) {
        const part = users.slice(from, from + 1000);
        const { data } = await api.call("post", "/api/v1/user/bulk", {
          body: removal(part, deleteTagged),
          once: newRequestName(),
        });
        kept += data.taggedNodes?.length ?? 0;
        data.results.forEach((result, i) => {
          const user = part[i];
          if (!result.ok && user) failed.push({ user, why: result.error?.message ?? "" });
        });
      }
      return { failed, kept };
    },
  };

  return {
    ...writes,

    /** Decides about each of several users. Returns which failed and why, and how many tagged nodes keep their access. */
    decide: async (what: Decision, users: readonly User[]) => {
      const failed: { user: User; why: string }[] = [];
      let kept = 0;
      for (const user of users)
        try {
          if (what === "suspend") kept += await writes.suspend(user, false);
          else await (what === "approve" ? writes.approve(user) : writes.restore(user));
        } catch (error) {
          failed.push({ user, why: error instanceof Error ? error.message : String(error) });
        }
      return { failed, kept };
    },
  };
}
