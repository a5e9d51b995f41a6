import type { Change, Node, PolicyVersion, User } from "@/api";
import { isExitRoute } from "@/nodes/facts";
import { printable, text } from "@/text";
import { relative } from "@/ui/time";

export type Lane = keyof typeof text.activity.lanes;
export const lanes = Object.keys(text.activity.lanes) as Lane[];

/** A change described in words. */
export interface EventWords {
  title: string;
  lane: Lane;
  /** Equal for changes that can be described together: "12 ci nodes joined". */
  sort: keyof typeof text.activity.many;
  /** Whether something ended: it was deleted, rejected or expired. */
  ended: boolean;
  actor: string;
}

type Said = Omit<EventWords, "actor">;
type Fields = Record<string, unknown>;

const t = text.activity;
const fieldsOf = (shape: unknown) => (shape ?? {}) as Fields;
const wordOf = (value: unknown) => printable(typeof value === "string" ? value : "");
/** The start of a key's public part: Ulc23 for `flk_Ulc23LnJgyvl_***`. */
export const keyWord = (key: string) => printable(key.replace(/^fl[a-z]_|_\*\*\*$/g, "").slice(0, 5));
const listOf = (value: unknown) => (Array.isArray(value) ? (value as string[]) : []);
const without = (a: readonly string[], b: readonly string[]) => a.filter((each) => !b.includes(each));

export function eventWords(entry: Change): EventWords {
  return { ...said(entry), actor: actorWords(entry) };
}

function said(entry: Change): Said {
  switch (entry.kind) {
    case "node":
      return nodeWords(entry);
    case "user":
      return userWords(entry);
    case "preauthkey":
      return preAuthKeyWords(entry);
    case "apikey":
      return apiKeyWords(entry);
    case "policy":
      return policyWords(entry);
    case "login":
    case "sshgrant":
      return signInWords(entry);
    case "dns":
    case "webhook":
      return serverWords(entry);
    default: {
      const title = t.other(printable(entry.kind), printable(entry.object), printable(entry.verb));
      return { title, lane: "server", sort: "other", ended: entry.verb === "deleted" };
    }
  }
}

export function actorWords({ actor }: Pick<Change, "actor">): string {
  const name = printable(actor.name);
  switch (actor.kind) {
    case "key":
      return t.actor.key(keyWord(actor.name));
    case "user":
      return t.actor.user(name);
    case "node":
      return t.actor.node;
    case "local":
      return t.actor.local(name);
    case "server":
    case "replica":
      return t.actor.server;
    default:
      return t.actor.unknown(printable(actor.kind), name);
  }
}

/** Prefixes as text: the two prefixes of an exit node are one entry. */
export function routeWords(prefixes: readonly string[]): string {
  const exit = prefixes.some(isExitRoute) ? [t.node.exit] : [];
  return [...exit, ...prefixes.filter((prefix) => !isExitRoute(prefix)).map((prefix) => printable(prefix))].join(", ");
}

function nodeWords(entry: Change): Said {
  const after = entry.after as Node | null;
  const before = entry.before as Node | null;
  const name = printable((after ?? before)?.givenName ?? entry.object);
  const nodes = { lane: "nodes", ended: false } as const;
  if (!before) return { ...nodes, title: t.node.joined(name), sort: "joined" };
  if (!after) {
    const swept = entry.actor.kind === "server";
    const title = swept ? t.node.swept(name) : t.node.deleted(name);
    return { ...nodes, title, sort: swept ? "swept" : "deleted", ended: true };
  }
  return routeChange(before, after, name) ?? nodeChange(entry, before, after, name);
}

function routeChange(before: Node, after: Node, name: string): Said | null {
  const changes = [
    ["approved", without(after.approvedRoutes, before.approvedRoutes)],
    ["disabled", without(before.approvedRoutes, after.approvedRoutes)],
    ["offers", without(after.availableRoutes, before.availableRoutes)],
    ["withdraws", without(before.availableRoutes, after.availableRoutes)],
    ["leads", without(after.subnetRoutes, before.subnetRoutes)],
    ["yields", without(before.subnetRoutes, after.subnetRoutes)],
  ] as const;
  const found = changes.find(([, routes]) => routes.length > 0);
  if (!found) return preferenceChange(before, after, name);
  const [sort, routes] = found;
  const ended = sort === "disabled" || sort === "withdraws" || sort === "yields";
  return { lane: "routes", sort, title: t.node[sort](name, routeWords(routes)), ended };
}

function preferenceChange(before: Node, after: Node, name: string): Said | null {
  const [was, is] = [before.routePreferences ?? {}, after.routePreferences ?? {}];
  const moved = [...new Set([...Object.keys(was), ...Object.keys(is)])]
    .filter((prefix) => (was[prefix] ?? 0) !== (is[prefix] ?? 0))
    .map((prefix) => t.node.preference(printable(prefix), is[prefix] ?? 0));
  if (moved.length === 0) return null;
  return { lane: "routes", sort: "preferred", title: t.node.preferred(name, moved.join(", ")), ended: false };
}

function nodeChange(entry: Change, before: Node, after: Node, name: string): Said {
  const nodes = { lane: "nodes", sort: "nodes", ended: false } as const;
  if ((!before.expired && after.expired) || (entry.actor.kind === "server" && entry.actor.reason === "expired"))
    return { ...nodes, title: t.node.expired(name), sort: "expired", ended: true };
  if (before.nodeKey !== after.nodeKey) return { ...nodes, title: t.node.again(name), sort: "again" };
  if (before.needsApproval !== after.needsApproval)
    return after.needsApproval
      ? { ...nodes, title: t.node.held(name), sort: "held", ended: true }
      : { ...nodes, title: t.node.letIn(name), sort: "letIn" };
  if (before.givenName !== after.givenName)
    return { ...nodes, title: t.node.renamed(printable(before.givenName), name), sort: "renamed" };
  const tags = [
    ...without(after.tags, before.tags).map((tag) => `+${tag}`),
    ...without(before.tags, after.tags).map((tag) => `−${tag}`),
  ];
  if (tags.length > 0)
    return { ...nodes, title: t.node.tagged(name, tags.map((tag) => printable(tag)).join(" ")), sort: "tagged" };
  if (before.user?.id !== after.user?.id)
    return { ...nodes, title: t.node.moved(name, printable(after.user?.name ?? "")), sort: "moved" };
  if (before.expiry !== after.expiry) {
    const title = after.expiry ? t.node.ends(name, relative(after.expiry, Date.parse(entry.at))) : t.node.endless(name);
    return { ...nodes, title, sort: "ends" };
  }
  if (before.ipAddresses.join() !== after.ipAddresses.join())
    return { ...nodes, title: t.node.address(name, printable(after.ipAddresses[0] ?? "")) };
  if (before.clientVersion !== after.clientVersion)
    return { ...nodes, title: t.node.version(name, printable(after.clientVersion)) };
  if (before.hostname !== after.hostname) return { ...nodes, title: t.node.host(name, printable(after.hostname)) };
  return { ...nodes, title: t.node.changed(name) };
}

function userWords({ before, after, object }: Change): Said {
  const was = before as User | null;
  const is = after as User | null;
  const name = printable((is ?? was)?.name ?? object);
  const users = { lane: "users", ended: false } as const;
  if (!was) return { ...users, title: t.user.created(name), sort: "userCreated" };
  if (!is) return { ...users, title: t.user.deleted(name), sort: "userDeleted", ended: true };
  if (!was.suspendedAt && is.suspendedAt)
    return { ...users, title: t.user.suspended(name), sort: "userSuspended", ended: true };
  if (was.suspendedAt && !is.suspendedAt) return { ...users, title: t.user.restored(name), sort: "userRestored" };
  if (!was.suspensionHeldAt && is.suspensionHeldAt)
    return { ...users, title: t.user.held(name), sort: "userHeld", ended: true };
  if (was.suspensionHeldAt && !is.suspensionHeldAt) return { ...users, title: t.user.kept(name), sort: "userKept" };
  if (was.needsApproval && !is.needsApproval) return { ...users, title: t.user.approved(name), sort: "userApproved" };
  const title = was.name === is.name ? t.user.changed(name) : t.user.renamed(printable(was.name), name);
  return { ...users, title, sort: "userChanged" };
}

function preAuthKeyWords({ before, after }: Change): Said {
  const was = fieldsOf(before);
  const is = fieldsOf(after ?? before);
  const key = keyWord(wordOf(is.key));
  const keys = { lane: "keys", ended: true } as const;
  if (!before) {
    const owner = listOf(is.aclTags).join(" ") || wordOf(fieldsOf(is.user).name);
    return {
      lane: "keys",
      ended: false,
      title: t.preauthkey.created(key, printable(owner)),
      sort: "preauthkeyCreated",
    };
  }
  if (!after) return { ...keys, title: t.preauthkey.deleted(key), sort: "preauthkeyDeleted" };
  if (!was.expired && is.expired) return { ...keys, title: t.preauthkey.expired(key), sort: "preauthkeyExpired" };
  return { lane: "keys", ended: false, title: t.preauthkey.changed(key), sort: "other" };
}

function apiKeyWords({ before, after }: Change): Said {
  const is = fieldsOf(after ?? before);
  const key = keyWord(wordOf(is.prefix));
  const keys = { lane: "keys", ended: true } as const;
  if (!before)
    return { lane: "keys", ended: false, title: t.apikey.created(key, wordOf(is.role)), sort: "apikeyCreated" };
  if (!after) return { ...keys, title: t.apikey.deleted(key), sort: "apikeyEnded" };
  if (!fieldsOf(before).expired && is.expired) return { ...keys, title: t.apikey.expired(key), sort: "apikeyEnded" };
  return { lane: "keys", ended: false, title: t.apikey.changed(key), sort: "other" };
}

function policyWords({ before, after, actor, object }: Change): Said {
  const is = (after ?? before) as PolicyVersion | null;
  const version = printable(is?.version ?? object);
  const policy = { lane: "policy", sort: "policy", ended: false } as const;
  if (is?.confirmBy) return { ...policy, title: t.policy.tried(version) };
  if (before) return { ...policy, title: t.policy.confirmed(version) };
  const back = actor.kind === "server" && is?.source === "api";
  return { ...policy, title: back ? t.policy.reverted(version) : t.policy.saved(version), ended: back };
}

function signInWords({ kind, after, before }: Change): Said {
  const is = fieldsOf(after ?? before);
  const rejected = Boolean(is.rejected);
  const signins = { lane: "signins", sort: "signin", ended: rejected } as const;
  if (kind === "login") {
    const owner = wordOf(fieldsOf(is.user).name);
    return { ...signins, title: rejected ? t.login.rejected : t.login.approved(owner) };
  }
  const { sshUser, sourceName, targetName } = fieldsOf(is.session);
  const words = t.ssh.session(wordOf(sshUser), wordOf(sourceName), wordOf(targetName));
  return { ...signins, title: rejected ? t.ssh.rejected(words) : t.ssh.approved(words) };
}

function serverWords({ kind, before, after }: Change): Said {
  const server = { lane: "server", sort: "server", ended: false } as const;
  if (kind === "dns") return { ...server, title: t.dns };
  const url = wordOf(fieldsOf(after ?? before).url);
  const host = URL.canParse(url) ? new URL(url).host : url;
  if (!before) return { ...server, title: t.webhook.created(host) };
  if (!after) return { ...server, title: t.webhook.deleted(host), ended: true };
  const disabled = fieldsOf(before).enabled && !fieldsOf(after).enabled;
  return disabled
    ? { ...server, title: t.webhook.disabled(host), ended: true }
    : { ...server, title: t.webhook.changed(host) };
}
