import type { AccessRow } from "@/access";
import { type AccessPrincipal, ApiError, type Node, type User } from "@/api";
import type { TestEntry } from "@/policy";
import { addressIn, destinationOf, firstPort } from "@/policy/tests";
import { accessMap, accessView } from "@/text/access";
import type { Option } from "@/ui/combobox";

/** The node that a name, ID or address in a question refers to, if any. */
export function nodeAsked(end: string, nodes: readonly Node[]): Node | undefined {
  const wanted = end.toLowerCase();
  return nodes.find(
    (n) => n.givenName.toLowerCase() === wanted || n.id === end || n.ipAddresses.some((address) => address === end),
  );
}

/** The name that policy rules use for one end of a question: they use tags and owners, not the names of nodes. */
export function policyName(end: string, nodes: readonly Node[]): string {
  const node = nodeAsked(end, nodes);
  return node ? (node.tags[0] ?? node.user?.name ?? node.ipAddresses[0] ?? end) : end;
}

/** A destination and a port in the format of rules and tests. */
export const destination = (end: string, port: string, nodes: readonly Node[]) =>
  destinationOf(policyName(end, nodes), port);

/**
 * A test that pins what a row shows: what is reachable must stay so, and what a draft removes must not come back. There
 * is none if only some of its pairs have access, because a test covers all of them, and none without a port.
 */
export function testOfRow({ from, to, cell, rules }: AccessRow, nodes: readonly Node[]): TestEntry | null {
  const kept = cell.pairs > 0;
  const internet = to.kind === "internet";
  const port = firstPort(
    kept ? (cell.gained.length > 0 ? cell.gained : cell.ports) : cell.lost,
    internet ? 443 : undefined,
  );
  const by = rules.filter((use) => (kept ? use.after : use.before) > 0).map((use) => use.rule);
  const src = named(
    from,
    by.flatMap((rule) => rule.from),
    nodes,
  );
  const dst = cell.own
    ? "autogroup:self"
    : named(
        to,
        by.flatMap((rule) => rule.to.map((end) => end.name)),
        nodes,
      );
  if (!port || !src || !dst || (kept && cell.pairs < cell.of && !cell.own)) return null;
  const ends = [destinationOf(dst, port.number)];
  const proto = port.proto === "tcp" ? {} : { proto: port.proto };
  return { src, ...proto, ...(kept ? { accept: ends } : { deny: ends }) };
}

/** The name of one end in a test, preferably as the rules name it; null if it cannot be named. */
function named({ kind, name, id }: AccessPrincipal, rules: readonly string[], nodes: readonly Node[]): string | null {
  if (kind === "others") return null;
  if (kind === "internet") return addressIn("0.0.0.0/0");
  if (kind === "route") return addressIn(name);
  if (kind !== "node") return name;
  const node = nodes.find((one) => one.id === id);
  return node ? (node.tags.find((tag) => rules.includes(tag)) ?? policyName(id, nodes)) : null;
}

const most = 40;

export interface Suggestion {
  name: string;
  kind: "group" | "tag" | "user" | "node";
}

/** Everything that can be named in a question. */
export function askable(
  principals: readonly AccessPrincipal[],
  nodes: readonly Node[],
  users: readonly User[],
): Suggestion[] {
  const all: Suggestion[] = [
    ...principals.flatMap(({ kind, name }) => (kind === "group" || kind === "tag" ? [{ name, kind } as const] : [])),
    ...users.map(({ name }) => ({ name, kind: "user" as const })),
    ...nodes.flatMap(({ tags }) => tags.map((name) => ({ name, kind: "tag" as const }))),
    ...nodes.map(({ givenName }) => ({ name: givenName, kind: "node" as const })),
  ];
  return [...new Map(all.map((one) => [one.name, one])).values()];
}

/** Suggestions for what was typed so far, prefix matches first, of the given kinds or of all. */
export function suggestions(
  typed: string,
  all: readonly Suggestion[],
  kinds?: readonly Suggestion["kind"][],
): Option[] {
  const wanted = typed.trim().toLowerCase();
  const begin: Option[] = [];
  const hold: Option[] = [];
  for (const { name, kind } of all) {
    if (kinds && !kinds.includes(kind)) continue;
    const at = name.toLowerCase().indexOf(wanted);
    const option = { value: name, note: accessMap.kinds[kind] };
    if (at === 0 || name.toLowerCase().indexOf(`:${wanted}`) >= 0) begin.push(option);
    else if (at > 0) hold.push(option);
  }
  return [...begin, ...hold].slice(0, most);
}

/** Why a question got no answer, at which field, and what could be asked instead. */
export interface AskProblem {
  side: "from" | "to" | null;
  text: string;
  instead: string[];
  /** The request ID in the server's log, if the question itself may be valid. */
  reference?: string;
}

const t = accessView.ask;

/** Turns the server's refusal of a question into a message for the person who asked. */
export function askProblem(asked: { from: string; to: string }, error: Error, all: readonly Suggestion[]): AskProblem {
  const sides = (["from", "to"] as const).filter((side) => error.message.includes(asked[side]));
  const unknown = error instanceof ApiError && error.status === 404;
  const side = sides[0];
  if (!unknown || !side) {
    const reference = error instanceof ApiError && error.status >= 500 ? error.requestId : "";
    return { side: null, text: sentence(error.message), instead: [], ...(reference && { reference }) };
  }
  const name = asked[side];
  if (/^[\da-f.:]+\/\d+$/i.test(name)) {
    const address = addressIn(name);
    return { side, text: t.network(name), instead: [address] };
  }
  if (name.startsWith("autogroup:")) return { side, text: t.autogroup(name), instead: [] };
  return { side, text: t.unknown(name), instead: nearest(name, all) };
}

/** A message of the server as a sentence. */
const sentence = (said: string) => `${said.charAt(0).toUpperCase()}${said.slice(1)}${/[.?!]$/.test(said) ? "" : "."}`;

/** Up to three names that are similar to a misspelt one, the most similar first. */
export function nearest(name: string, all: readonly Suggestion[]): string[] {
  const wanted = name.toLowerCase();
  const bare = (text: string) => text.replace(/^(tag|group):/, "");
  const far = Math.max(1, Math.floor(bare(wanted).length / 3));
  return all
    .map((one) => ({ name: one.name, edits: editsBetween(bare(wanted), bare(one.name.toLowerCase()), far) }))
    .filter(({ edits }) => edits <= far)
    .sort((a, b) => a.edits - b.edits)
    .slice(0, 3)
    .map((one) => one.name);
}

/** The Levenshtein distance between two names, or a number above the limit. */
function editsBetween(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let k = 1; k <= b.length; k++) {
      next[k] = Math.min(
        (row[k] ?? 0) + 1,
        (next[k - 1] ?? 0) + 1,
        (row[k - 1] ?? 0) + (a[i - 1] === b[k - 1] ? 0 : 1),
      );
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
