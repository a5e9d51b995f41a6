/** What a test of the policy says, found in what the server says of access. */

/** The first port that words such as "UDP ports 53, 60000-61000" speak of; of all ports the usual one, that of SSH. */
export function firstPort(access: readonly string[], usual = 22): { proto: string; number: number } | null {
  for (const said of access) {
    if (/^all ports$/i.test(said)) return { proto: "tcp", number: usual };
    const found = /^(?:(tcp|udp|sctp) )?ports? (\d+)/i.exec(said);
    if (found) return { proto: found[1]?.toLowerCase() ?? "tcp", number: Number(found[2]) };
  }
  return null;
}

export const isInternet = (prefix: string) => prefix === "0.0.0.0/0" || prefix === "::/0";

/** Addresses that are in no private network, and that everybody knows. */
const internet: Record<string, string> = { "0.0.0.0/0": "1.1.1.1", "::/0": "2606:4700:4700::1111" };

/** One address of a network, as a test is about one connection: the first that a device may have. */
export function addressIn(prefix: string): string {
  const [base = "", length] = prefix.split("/");
  if (internet[prefix]) return internet[prefix];
  if (base.endsWith("::") && length !== "128") return `${base}1`;
  return length === "32" || base.includes(":") ? base : base.replace(/\d+$/, (last) => String(Number(last) | 1));
}

/** Where a test leads: an address with colons stands in brackets. */
export const destinationOf = (name: string, port: number | string) =>
  `${name.includes(":") && /^[0-9a-f:]+$/i.test(name) ? `[${name}]` : name}:${port}`;
