/** Conversion of the server's access descriptions to the entries of policy tests. */

/**
 * The first port in descriptions such as "UDP ports 53, 60000-61000". If all ports are allowed, the usual one, by
 * default that of SSH.
 */
export function firstPort(access: readonly string[], usual = 22): { proto: string; number: number } | null {
  for (const said of access) {
    if (/^all ports$/i.test(said)) return { proto: "tcp", number: usual };
    const found = /^(?:(tcp|udp|sctp) )?ports? (\d+)/i.exec(said);
    if (found) return { proto: found[1]?.toLowerCase() ?? "tcp", number: Number(found[2]) };
  }
  return null;
}

export const isInternet = (prefix: string) => prefix === "0.0.0.0/0" || prefix === "::/0";

/** Well-known addresses outside all private networks. */
const internet: Record<string, string> = { "0.0.0.0/0": "1.1.1.1", "::/0": "2606:4700:4700::1111" };

/** A host address in a network, usually the first one, because a test is about a single connection. */
export function addressIn(prefix: string): string {
  const [base = "", length] = prefix.split("/");
  if (internet[prefix]) return internet[prefix];
  if (base.endsWith("::") && length !== "128") return `${base}1`;
  return length === "32" || base.includes(":") ? base : base.replace(/\d+$/, (last) => String(Number(last) | 1));
}

/** The destination of a test: IPv6 addresses are put in brackets. */
export const destinationOf = (name: string, port: number | string) =>
  `${name.includes(":") && /^[0-9a-f:]+$/i.test(name) ? `[${name}]` : name}:${port}`;
