import { type QueryClient, queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useCallback, useContext, useEffect, useRef } from "react";
import { api } from "./client";
import type { Role } from "./types";

export interface Session {
  key: { id: string; prefix: string; role: Role | "member"; scopes: string[]; expiration: string | null };
  /** The name of the person, or "" if they signed in with an API key. */
  person: string;
  csrf: string;
  coordinator: { url: string; version: string; productVersion: string };
  console: { version: string };
  capabilities: string[];
}

/** The host of a server's URL, which people use as the name of their network. */
export const hostOf = (url: string) => (URL.canParse(url) ? new URL(url).host : url);

export type Noun =
  | "users"
  | "preauthkeys"
  | "apikeys"
  | "nodes"
  | "routes"
  | "logins"
  | "ssh"
  | "dns"
  | "policy"
  | "history"
  | "webhooks"
  | "service";

export type Right = `${Noun}:${"read" | "write"}`;

/** What only admins may change; operators may change everything else. */
const adminNouns: readonly string[] = ["preauthkeys", "apikeys", "policy", "webhooks"];

/** What members may see: their own. */
const memberNouns: readonly string[] = ["nodes", "preauthkeys"];

/**
 * Whether a key with this role and these scopes has a permission. It decides only what is shown; the server enforces
 * permissions.
 */
export function allows(role: Role | "member", scopes: readonly string[], right: Right): boolean {
  const [noun = "", act] = right.split(":");
  if (role === "member") return act === "read" && memberNouns.includes(noun);
  const whole = scopes.length === 0 || scopes.includes(noun);
  if (act === "read") return whole || scopes.includes(`${noun}:read`);
  return whole && (role === "admin" || (role === "operator" && !adminNouns.includes(noun)));
}

function taken(session: Session): Session {
  api.goOn(session.csrf, session.key.id);
  return { ...session, key: { ...session.key, scopes: session.key.scopes ?? [] } };
}

/** Continues the session with another API key, and keeps the cached data. */
export async function continueWith(client: QueryClient, key: string) {
  client.setQueryData(sessionQuery.queryKey, taken((await api.changeKey(key)) as Session));
}

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: async ({ signal }): Promise<Session> =>
    taken(await (await api.send("/admin/api/session", { signal })).json()),
  // Without a session there is no stream that would notice when the server is back.
  retry: 1,
  refetchInterval: ({ state }) => (state.status === "error" && !state.data ? 5000 : false),
});

const Context = createContext<Session | null>(null);

export function SessionProvider({
  children,
  waiting,
  failed,
}: {
  children: ReactNode;
  waiting: ReactNode;
  failed(error: Error, retry: () => void): ReactNode;
}) {
  const client = useQueryClient();
  const { data, error, failureReason, refetch } = useQuery(sessionQuery);
  // A retry has no error yet, but until it succeeds, the last error still applies.
  const last = useRef<Error | null>(null);
  last.current = error ?? failureReason ?? last.current;
  useEffect(() => {
    api.renew = () => client.fetchQuery({ ...sessionQuery, staleTime: 0 });
  }, [client]);
  if (data) return <Context value={data}>{children}</Context>;
  return last.current ? failed(last.current, () => void refetch()) : waiting;
}

export function useSession(): Session {
  const session = useContext(Context);
  if (!session) throw new Error("useSession is for what SessionProvider holds");
  return session;
}

/** `const can = useCan(); can("nodes:write")` */
export function useCan(): (right: Right) => boolean {
  const { key } = useSession();
  return useCallback((right) => allows(key.role, key.scopes, right), [key]);
}
