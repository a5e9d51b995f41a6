/** Where an address is reachable from: the internet, its own network, or the network of an internet provider. */
export type EndpointKind = "public" | "local" | "carrier";

/** The address of an endpoint, without port and brackets. */
export const hostOf = (endpoint: string) => endpoint.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");

export function kindOf(endpoint: string): EndpointKind {
  const host = hostOf(endpoint);
  // The internet's IPv6 addresses are 2000::/3; the rest is private, link-local or reserved.
  if (host.includes(":")) return /^[23][0-9a-f]{3}:/i.test(host) ? "public" : "local";
  const [a = 0, b = 0] = host.split(".").map(Number);
  if (a === 100 && b >= 64 && b < 128) return "carrier";
  const local =
    a === 10 || a === 127 || (a === 172 && b >= 16 && b < 32) || (a === 192 && b === 168) || (a === 169 && b === 254);
  return local ? "local" : "public";
}

const order: readonly EndpointKind[] = ["public", "carrier", "local"];

/** Endpoints with their kinds, public ones first. */
export const sortedEndpoints = (endpoints: readonly string[]) =>
  endpoints
    .map((endpoint) => ({ endpoint, kind: kindOf(endpoint) }))
    .sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));

/** The /24 that an IPv4 address is in, or nothing for IPv6. */
const subnetOf = (host: string) => (host.includes(":") ? "" : host.slice(0, host.lastIndexOf(".")));

/**
 * Whether two devices are probably in the same local network: they have the same public IPv4 address, and different
 * local addresses in one /24. The same local address on both, such as that of a container bridge, proves nothing, and
 * customers of one provider may share a public address.
 */
export function sameNetwork(mine: readonly string[], theirs: readonly string[]): boolean {
  const [a, b] = [mine.map(hostOf), theirs.map(hostOf)];
  if (!a.some((host) => !host.includes(":") && b.includes(host) && kindOf(host) === "public")) return false;
  const locals = (hosts: readonly string[]) => hosts.filter((host) => subnetOf(host) && kindOf(host) === "local");
  const others = locals(b);
  return locals(a).some((host) => others.some((other) => other !== host && subnetOf(other) === subnetOf(host)));
}
