import type { DNS, Node, Policy, ServerState } from "@/api";
import type { Session } from "@/api/session";

/** The data in a support bundle. */
export interface BundleParts {
  at: string;
  browser: string;
  session: Session;
  server: ServerState | undefined;
  dns: DNS | undefined;
  policy: Policy | null | undefined;
  nodes: readonly Node[] | undefined;
  users: number | undefined;
}

/** Counts items by a key. */
function countBy<T>(items: readonly T[], word: (item: T) => string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const item of items) counts[word(item) || "unknown"] = (counts[word(item) || "unknown"] ?? 0) + 1;
  return Object.fromEntries(Object.entries(counts).sort(([a], [b]) => a.localeCompare(b)));
}

/**
 * Data that helps to answer a question about an installation, without anything that identifies its users: no keys, no
 * names or addresses of nodes, people or networks, no policy text.
 */
export function supportBundle({ at, browser, session, server, dns, policy, nodes, users }: BundleParts) {
  return {
    at,
    browser,
    console: session.console,
    session: { role: session.key.role, scopes: session.key.scopes },
    server: server && {
      version: server.version,
      startedAt: server.startedAt,
      database: server.database,
      tls: server.url.startsWith("https:"),
      checks: server.checks,
      relays: server.relays.map(({ region, embedded, homes, measured, medianMilliseconds }) => ({
        region: region.id,
        embedded,
        homes,
        measured,
        medianMilliseconds,
      })),
      replicas: server.replicas.map(({ version, revision, nodes: connected, draining, ageMillis }) => ({
        version,
        revision,
        nodes: connected,
        draining,
        ageMillis,
      })),
    },
    dns: dns && {
      magicDNS: dns.magicDNS,
      baseDomain: dns.baseDomain !== "",
      nameservers: dns.nameservers.length,
      split: Object.keys(dns.split).length,
      searchDomains: dns.searchDomains.length,
      extraRecords: dns.extraRecords.length,
      source: dns.source,
      pinned: dns.pinned,
    },
    policy: policy && { version: policy.version, source: policy.source, bytes: policy.policy.length },
    users,
    nodes: nodes && {
      all: nodes.length,
      online: nodes.filter((node) => node.online).length,
      expired: nodes.filter((node) => node.expired).length,
      ephemeral: nodes.filter((node) => node.ephemeral).length,
      tagged: nodes.filter((node) => node.tags.length > 0).length,
      advertising: nodes.filter((node) => node.availableRoutes.length > 0).length,
      systems: countBy(nodes, (node) => node.os),
      clients: countBy(nodes, (node) => node.clientVersion.split("-")[0] ?? ""),
    },
    capabilities: session.capabilities,
  };
}
