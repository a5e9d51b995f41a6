import type { ApiKey, Node, NodeBuckets, PendingLogin, PendingSSH, Policy, ServerState, User } from "@/api";
import type { Right } from "@/api/session";
import { isServer, outages, systemName, waitingRoutes } from "@/nodes";
import { entry, printable } from "@/text";
import { overviewWords } from "@/text/overview";

const t = overviewWords.attention;
const isHeld = (user: User) => user.suspensionHeldAt !== undefined;
const day = 864e5;

/** One thing to do: who or what it is about, what is wrong, and where to deal with it. */
export interface AttentionLine {
  id: string;
  tone: "bad" | "warn" | "info";
  subject: string;
  rest: string;
  verb: string;
  to: "/requests" | "/routes" | "/nodes" | "/policy" | "/settings/api-keys" | "/settings/server" | "/timeline";
  search?: Record<string, string>;
}

/** What is known; data that a key may not see is omitted. */
export interface Known {
  now: number;
  nodes?: readonly Node[];
  users?: readonly User[];
  presence?: ReadonlyMap<string, NodeBuckets>;
  logins?: readonly PendingLogin[];
  ssh?: readonly PendingSSH[];
  policy?: Policy | null;
  server?: ServerState;
  serverFailed?: boolean;
  apiKeys?: readonly ApiKey[];
  session: {
    key: { id: string; prefix: string; expiration: string | null };
    server: string;
    console: string;
  };
  relative(at: string): string;
  /** Whether the person may do what a line asks for. If not, the link is only for viewing. */
  may(right: Right): boolean;
}

/** What needs attention, most important first: what is broken, who is waiting, what will break. */
export function attentionLines(known: Known): AttentionLine[] {
  return [
    ...ofServer(known),
    ...ofRequests(known),
    ...ofApprovals(known),
    ...ofPolicy(known),
    ...ofRoutes(known),
    ...ofNodes(known),
    ...ofKeys(known),
  ]
    .map((line, place) => ({ line, place }))
    .sort((a, b) => weight[a.line.tone] - weight[b.line.tone] || a.place - b.place)
    .map(({ line }) => line);
}

const weight = { bad: 0, warn: 1, info: 2 };

function* ofServer({ server, serverFailed, session, users = [] }: Known): Generator<AttentionLine> {
  const at = { verb: t.open, to: "/settings/server" as const };
  if (serverFailed) yield { id: "server", tone: "bad", subject: t.server.subject, rest: t.serverGone, ...at };
  for (const check of server?.checks ?? []) {
    if (check.status === "pass" || check.part === "policy") continue;
    // Held suspensions have a line of their own, which leads to where somebody decides about them.
    const output = check.output.filter((why) => !(why.startsWith("suspensions held") && users.some(isHeld)));
    if (output.length === 0) continue;
    const tone = check.status === "fail" ? "bad" : "warn";
    const subject = entry(overviewWords.health.parts, check.part) ?? check.part;
    yield { id: `check ${check.part}`, tone, subject, rest: `: ${printable(output.join(" "), 300)}`, ...at };
  }
  const relays = server?.relays ?? [];
  if (relays.some((relay) => relay.measured > 0))
    for (const { region, measured, homes } of relays)
      if (measured + homes === 0)
        yield {
          id: `relay ${region.id}`,
          tone: "info",
          subject: t.relay(printable(region.name || region.code, 60)),
          rest: t.relayRest,
          ...at,
        };
  if (session.server && session.console && session.server !== session.console)
    yield {
      id: "versions",
      tone: "warn",
      subject: t.versions.subject,
      rest: t.versions.rest(session.server, session.console),
      ...at,
    };
}

function* ofRequests({ logins = [], ssh = [], may }: Known): Generator<AttentionLine> {
  const at = { tone: "warn", verb: may("logins:write") ? t.answer : t.show, to: "/requests" } as const;
  const [only] = logins;
  if (only && logins.length === 1) {
    const rest = t.login(printable(systemName(only.os), 24), printable(only.address, 45));
    yield { id: `login ${only.code}`, subject: printable(only.hostname, 60), rest, ...at };
  } else if (only) yield { id: "logins", subject: t.logins(logins.length), rest: t.loginsRest, ...at };
  if (ssh.length > 0) yield { id: "ssh", subject: t.ssh(ssh.length), rest: t.sshRest(ssh.length), ...at };
}

/** People and nodes that have no access until somebody approves them, and people who keep it until somebody decides. */
function* ofApprovals({ nodes = [], users = [], may }: Known): Generator<AttentionLine> {
  const at = { tone: "warn", to: "/requests" } as const;
  const people = users.filter((user) => user.needsApproval);
  const verb = may("users:write") ? t.answer : t.show;
  if (people.length > 0)
    yield { id: "users", subject: t.people(people.length), rest: t.waits(people.length), verb, ...at };
  const leaving = users.filter(isHeld).length;
  if (leaving > 0)
    yield { id: "suspensions", subject: t.suspensions(leaving), rest: t.suspensionsRest(leaving), verb, ...at };
  const held = nodes.filter((node) => node.needsApproval);
  const [only] = held;
  const subject = only && held.length === 1 ? printable(only.givenName) : t.held(held.length);
  if (only)
    yield { id: "held", subject, rest: t.waits(held.length), verb: may("nodes:write") ? t.answer : t.show, ...at };
}

function* ofPolicy({ policy, server }: Known): Generator<AttentionLine> {
  const at = { verb: t.open, to: "/policy" } as const;
  if (policy === null)
    yield { id: "no policy", tone: "info", subject: t.noPolicy.subject, rest: t.noPolicy.rest, ...at };
  if (policy?.confirmBy)
    yield { id: "confirm", tone: "bad", subject: t.policyConfirm.subject, rest: t.policyConfirm.rest, ...at };
  const check = server?.checks.find(({ part }) => part === "policy");
  for (const [i, why] of (check?.output ?? []).entries()) {
    const line = /\bline (\d+)/.exec(why)?.[1];
    const search = line ? { line } : undefined;
    yield {
      id: `policy ${i}`,
      tone: "warn",
      subject: t.policyProblem.subject,
      rest: `: ${printable(why, 300)}`,
      search,
      ...at,
    };
  }
}

/** More than this many lines of the same kind are combined into one. */
const apart = 3;
/** The number of nodes that the timeline shows by default. */
const mostStrips = 8;

function* ofRoutes({ nodes = [], may }: Known): Generator<AttentionLine> {
  const waiting = nodes.filter((node) => waitingRoutes(node).length > 0);
  const at = { tone: "warn", verb: may("routes:write") ? t.review : t.show } as const;
  if (waiting.length > apart) {
    yield { id: "routes", subject: t.routes(waiting.length), rest: t.routesRest, to: "/routes", ...at };
    return;
  }
  for (const node of waiting) {
    const routes = waitingRoutes(node);
    const nets = routes.filter((route) => route !== "0.0.0.0/0" && route !== "::/0");
    const [first = ""] = nets;
    const rest = nets.length === 0 ? t.exit : t.route(routes.length > 1 ? t.and(first, routes.length - 1) : first);
    yield { id: `route ${node.id}`, subject: printable(node.givenName), rest, to: "/routes", ...at };
  }
}

function* ofNodes({ nodes = [], presence, now }: Known): Generator<AttentionLine> {
  const show = { verb: t.show, to: "/nodes" } as const;
  const expired = nodes.filter((node) => node.expired);
  if (expired.length > 0)
    yield {
      id: "expired",
      tone: "warn",
      subject: t.expired(expired.length),
      rest: t.expiredRest(expired.length),
      ...show,
      search: { tab: "expired" },
    };
  const servers = nodes.filter((node) => isServer(node) && !node.expired);
  const away = servers.filter((node) => !node.online && now - Date.parse(node.lastSeen) < day);
  if (away.length > apart)
    yield {
      id: "away",
      tone: "warn",
      subject: t.awayMany(away.length),
      rest: t.awayRest,
      ...show,
      search: { tab: "offline", sort: "-seen" },
    };
  else
    for (const node of away)
      yield {
        id: `away ${node.id}`,
        tone: "warn",
        subject: printable(node.givenName),
        rest: t.away,
        ...show,
        search: { node: node.id },
      };
  const unsteady = servers.filter((node) => node.online && outages(node, presence?.get(node.id)) > 1);
  if (unsteady.length > 0)
    yield {
      id: "unsteady",
      tone: "info",
      subject: t.unsteady(unsteady.length),
      rest: t.unsteadyRest,
      verb: t.show,
      to: "/timeline",
      search: {
        nodes: unsteady
          .slice(0, mostStrips)
          .map(({ id }) => id)
          .join(","),
      },
    };
  const soon = nodes.filter((node) => !node.expired && node.expiry && Date.parse(node.expiry) - now < 7 * day);
  if (soon.length > 0)
    yield {
      id: "expiring",
      tone: "info",
      subject: t.expiring(soon.length),
      rest: t.expiringRest(soon.length),
      ...show,
      search: { sort: "expiry" },
    };
}

function* ofKeys({ apiKeys = [], session, now, relative, may }: Known): Generator<AttentionLine> {
  const mayRotate = may("apikeys:write");
  const at = { tone: "info", verb: mayRotate ? t.rotate : t.show, to: "/settings/api-keys" } as const;
  const rotate = (id: string) => (mayRotate ? { search: { rotate: id } } : {});
  const ending = (at: string | null) => at !== null && Date.parse(at) > now && Date.parse(at) - now < 14 * day;
  const { key } = session;
  if (key.expiration && ending(key.expiration)) {
    const tone = Date.parse(key.expiration) - now < 3 * day ? "warn" : "info";
    const rest = t.ownKey.rest(key.prefix, relative(key.expiration));
    yield { ...at, ...rotate(key.id), id: "own key", tone, subject: t.ownKey.subject, rest };
  }
  const others = apiKeys.filter((other) => other.id !== key.id && !other.expired && ending(other.expiration));
  const [only] = others;
  if (only)
    yield {
      ...at,
      // If there are several, the person picks one in the list.
      ...(others.length === 1 ? rotate(only.id) : { verb: t.show, search: { sort: "expires" } }),
      id: "api keys",
      subject: t.apiKeys(others.length),
      rest: t.apiKeysRest(others.length),
    };
}
