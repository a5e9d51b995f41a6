const base = "https://github.com/fairlead-mesh/fairlead/blob/main/docs/";

/** Where the documentation explains what a page is about. The first matching path is used. */
const topics: readonly [path: string, document: string][] = [
  ["/my", "console.md#my-devices"],
  ["/nodes/new", "join.md"],
  ["/nodes", "console.md#nodes"],
  ["/users", "console.md#users"],
  ["/routes", "routes.md"],
  ["/keys", "join.md"],
  ["/requests", "join.md"],
  ["/policy", "policy.md"],
  ["/access", "console.md#access-map"],
  ["/timeline", "console.md#timeline"],
  ["/settings/api-keys", "api.md"],
  ["/settings/sessions", "console.md#settings"],
  ["/settings/dns", "dns.md"],
  ["/settings/webhooks", "webhooks.md"],
  ["/settings/server", "operating.md"],
  ["/settings/cluster", "operating.md#see-the-state-of-all-replicas"],
];

/** Guides to what is done outside of the console. */
export const guides = {
  backups: "backup.md#every-night",
  https: "install.md",
};
export type GuideName = keyof typeof guides;

export const guideTo = (name: GuideName) => base + guides[name];

/** The URL of the documentation for a page of the console, with or without the prefix /admin. */
export function documentationOf(path: string): string {
  const page = path.replace(/^\/admin(?=\/|$)/, "");
  const found = topics.find(([start]) => page === start || page.startsWith(`${start}/`));
  return base + (found?.[1] ?? "console.md");
}
