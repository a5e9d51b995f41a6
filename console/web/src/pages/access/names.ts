import type { AccessRow } from "@/access";
import type { AccessPrincipal, Node, User } from "@/api";
import type { TestEntry } from "@/policy";
import { addressIn, destinationOf, firstPort } from "@/policy/tests";

/** How a policy names who was asked about: rules speak of tags and owners, not of nodes by name. */
export function policyName(end: string, nodes: readonly Node[]): string {
  const wanted = end.toLowerCase();
  const node = nodes.find(
    (n) => n.givenName.toLowerCase() === wanted || n.id === end || n.ipAddresses.some((address) => address === end),
  );
  return node ? (node.tags[0] ?? node.user?.name ?? node.ipAddresses[0] ?? end) : end;
}

/** A place and a port as rules and tests write them. */
export const destination = (end: string, port: string, nodes: readonly Node[]) =>
  destinationOf(policyName(end, nodes), port);

/**
 * A test that holds fast what a row says: what is reached must stay so, and what a draft takes away must not come back.
 * There is none where only some of its pairs reach each other, as a test is about all, nor of what has no port.
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

/** How a test names one end, best by what the rules say of it; null for what it cannot name. */
function named({ kind, name, id }: AccessPrincipal, rules: readonly string[], nodes: readonly Node[]): string | null {
  if (kind === "others") return null;
  if (kind === "internet") return addressIn("0.0.0.0/0");
  if (kind === "route") return addressIn(name);
  if (kind !== "node") return name;
  const node = nodes.find((one) => one.id === id);
  return node ? (node.tags.find((tag) => rules.includes(tag)) ?? policyName(id, nodes)) : null;
}

const most = 40;

/** What may be meant by what was typed so far: first what begins with it. */
export function suggestions(
  typed: string,
  principals: readonly AccessPrincipal[],
  nodes: readonly Node[],
  users: readonly User[],
): string[] {
  const wanted = typed.trim().toLowerCase();
  const names = new Set([
    ...principals.filter((p) => p.kind === "group" || p.kind === "tag").map((p) => p.name),
    ...users.map((u) => u.name),
    ...nodes.map((n) => n.givenName),
  ]);
  const begin: string[] = [];
  const hold: string[] = [];
  for (const name of names) {
    const at = name.toLowerCase().indexOf(wanted);
    if (at === 0 || name.toLowerCase().indexOf(`:${wanted}`) >= 0) begin.push(name);
    else if (at > 0) hold.push(name);
  }
  return [...begin, ...hold].slice(0, most);
}
