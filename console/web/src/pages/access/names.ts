import type { AccessPrincipal, Node, User } from "@/api";

/** How a policy names who was asked about: rules speak of tags and owners, not of nodes by name. */
export function policyName(end: string, nodes: readonly Node[]): string {
  const wanted = end.toLowerCase();
  const node = nodes.find(
    (n) => n.givenName.toLowerCase() === wanted || n.id === end || n.ipAddresses.some((address) => address === end),
  );
  return node ? (node.tags[0] ?? node.user?.name ?? node.ipAddresses[0] ?? end) : end;
}

/** A place and a port as rules and tests write them. */
export const destination = (end: string, port: string, nodes: readonly Node[]) => {
  const name = policyName(end, nodes);
  return `${name.includes(":") && /^[0-9a-f:]+$/i.test(name) ? `[${name}]` : name}:${port}`;
};

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
