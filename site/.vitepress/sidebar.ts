// The navigation: which pages there are, in the order in which a newcomer needs them.
import { readdirSync } from "node:fs";
import path from "node:path";
import type { DefaultTheme } from "vitepress";
import { root, target, title } from "./markdown";

/** Returns the sidebar entry of a file in docs. Throws an error if the file does not exist. */
const to = (text: string, file: string): DefaultTheme.SidebarItem => ({
  text,
  link: target("docs/README.md", file).replace(/(index)?\.md/, ""),
});

/** all makes entries for the files of a directory in docs, with their own titles. */
function all(directory: string): DefaultTheme.SidebarItem[] {
  return readdirSync(path.join(root, "docs", directory))
    .filter((name) => name.endsWith(".md") && name !== "README.md")
    .map((name) => to(title(`docs/${directory}/${name}`), `${directory}/${name}`));
}

export const sidebar: DefaultTheme.SidebarItem[] = [
  {
    text: "Get started",
    items: [
      to("How it works", "how-it-works.md"),
      to("Demo", "../README.md#demo"),
      to("Install", "install.md"),
      to("Quick start without Docker", "quickstart.md"),
      to("Verify a download", "verify.md"),
      to("Join devices", "join.md"),
      to("Move from Headscale", "moving-from-headscale.md"),
      to("Move from Tailscale", "moving-from-tailscale.md"),
    ],
  },
  {
    text: "Guides",
    items: [
      to("Access policy", "policy.md"),
      to("Sign-in with OIDC", "identity.md"),
      to("Sign-in with passkeys", "passkeys.md"),
      to("Subnet routers and exit nodes", "routes.md"),
      to("DNS", "dns.md"),
      to("Console", "console.md"),
      to("Webhooks", "webhooks.md"),
      to("API", "api.md"),
      to("Roles and operations", "roles.md"),
    ],
  },
  {
    text: "Operate",
    items: [
      to("Production checklist", "production.md"),
      to("Operating", "operating.md"),
      to("High availability", "high-availability.md"),
      to("How long failures last", "failover-times.md"),
      to("How many devices a server can handle", "scale.md"),
      to("Upgrade and roll back", "upgrade.md"),
      to("Back up and restore", "backup.md"),
      to("Recovery", "recovery.md"),
      to("Monitoring", "monitoring.md"),
      { ...to("Runbook", "runbook/README.md"), collapsed: true, items: all("runbook") },
      to("Troubleshooting", "troubleshooting.md"),
      to("Certificates", "certificates.md"),
      to("Reverse proxies", "reverse-proxies.md"),
      to("Relays", "relays.md"),
      to("Packages", "packages.md"),
      to("Kubernetes", "kubernetes.md"),
    ],
  },
  {
    text: "Reference",
    items: [
      to("Configuration", "configuration.md"),
      to("Command line", "cli.md"),
      to("Metrics", "metrics.md"),
      to("Glossary", "glossary.md"),
    ],
  },
  {
    text: "Background",
    items: [
      to("Architecture", "ARCHITECTURE.md"),
      to("Client protocol", "protocol.md"),
      { ...to("Design decisions", "adr/README.md"), collapsed: true, items: all("adr") },
      to("Security", "security.md"),
      to("Security findings", "security-findings.md"),
      to("Review findings", "review-findings.md"),
      to("Specification coverage", "spec-coverage.md"),
      to("Deviations from the specification", "specification.md"),
      to("Dependencies", "dependencies.md"),
    ],
  },
  {
    text: "About",
    items: [
      to("FAQ", "faq.md"),
      to("Comparison", "comparison.md"),
      to("Limitations", "limitations.md"),
      to("Support policy", "support.md"),
      to("Release notes", "../CHANGELOG.md"),
      to("Releases", "release.md"),
      to("Report a vulnerability", "../SECURITY.md"),
      to("Contribute", "../CONTRIBUTING.md"),
    ],
  },
];
