import type { AccessRow } from "@/access";
import type { AccessPrincipal, Node, User } from "@/api";
import type { TestEntry } from "@/policy";
import { addressIn, destinationOf, firstPort } from "@/policy/tests";

/** The name that policy rules use for what was asked about: they use tags and owners, not the names of nodes. */
export function policyName(end: string, nodes: readonly Node[]): string {
  const wanted = end.toLowerCase();
  const node = nodes.find(
    (n) => n.givenName.toLowerCase() === wanted || n.id === end || n.ipAddresses.some((address) => address === end),
  );
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

/** Suggestions for what was typed so far, prefix matches first. */
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
