import { expect, test } from "vitest";
import type { DNS, Node, Policy, ServerState } from "@/api";
import { supportBundle } from "./bundle";

const secret = "hidden-word";

test("a support bundle counts, and tells no names, addresses or keys", () => {
  const node = {
    id: "1",
    givenName: secret,
    hostname: secret,
    machineKey: secret,
    nodeKey: secret,
    ipAddresses: [secret],
    availableRoutes: [secret],
    tags: [`tag:${secret}`],
    user: { name: secret },
    online: true,
    os: "linux",
    clientVersion: "1.98.2-t1234",
  } as unknown as Node;
  const bundle = supportBundle({
    at: "2026-03-01T10:00:00Z",
    browser: "Chromium",
    session: {
      key: { id: secret, prefix: secret, role: "admin", scopes: [], expiration: null },
      person: "",
      csrf: secret,
      coordinator: { url: `https://${secret}`, version: "", productVersion: "" },
      console: { version: "1" },
      capabilities: ["listNodes"],
    },
    server: {
      url: `https://${secret}`,
      version: { productVersion: "1" },
      replica: secret,
      startedAt: "2026-03-01T09:00:00Z",
      database: "sqlite",
      checks: [],
      relays: [{ region: { id: 900, code: secret, name: secret }, embedded: true, homes: 1, measured: 1 }],
      replicas: [{ id: secret, version: "1", revision: "7", nodes: 1, ageMillis: 5 }],
    } as unknown as ServerState,
    dns: {
      magicDNS: true,
      baseDomain: secret,
      nameservers: [secret],
      split: { [secret]: [secret] },
      searchDomains: [secret],
      extraRecords: [{ name: secret }],
      source: "api",
      pinned: false,
    } as unknown as DNS,
    policy: { version: "3", source: "api", policy: secret } as unknown as Policy,
    nodes: [node, { ...node, os: "", online: false }],
    users: 4,
  });
  expect(JSON.stringify(bundle)).not.toContain(secret);
  expect(bundle.nodes).toMatchObject({
    all: 2,
    online: 1,
    advertising: 2,
    systems: { linux: 1, unknown: 1 },
    clients: { "1.98.2": 2 },
  });
  expect(bundle.dns).toMatchObject({ nameservers: 1, split: 1, baseDomain: true });
  expect(bundle.server?.tls).toBe(true);
});
