/** Policies to start from, as texts. The people in them exist; the tags are for future nodes. */

export type TemplateName = "home" | "team" | "company" | "contractor";

export const templateNames: readonly TemplateName[] = ["home", "team", "company", "contractor"];

interface People {
  /** Who becomes an administrator, in the syntax of a policy. */
  admins: readonly string[];
  /** All other users. */
  others: readonly string[];
}

/** The text of a template. A network without users gets empty groups. */
export const templateText = (name: TemplateName, people: People): string => texts[name](people);

const list = (names: readonly string[]) => `[${names.map((name) => JSON.stringify(name)).join(", ")}]`;

/** A test that the first administrator keeps the necessary access; empty if there are no administrators. */
const adminTest = (admins: readonly string[], ...accept: string[]) =>
  admins[0] ? `\n    { "src": ${JSON.stringify(admins[0])}, "accept": ${list(accept)} },` : "";

const texts: Record<TemplateName, (people: People) => string> = {
  home: () => `{
  // Give this tag to devices that everyone shares, such as a NAS or a printer.
  "tagOwners": {
    "tag:shared": ["autogroup:member"],
  },

  "acls": [
    // Everyone reaches their own devices.
    { "action": "accept", "src": ["autogroup:member"], "dst": ["autogroup:self:*"] },
    // Everyone reaches shared devices.
    { "action": "accept", "src": ["autogroup:member"], "dst": ["tag:shared:*"] },
    // Everyone may use exit nodes.
    { "action": "accept", "src": ["autogroup:member"], "dst": ["autogroup:internet:*"] },
  ],
}
`,

  team: ({ admins }) => `{
  "groups": {
    "group:admins": ${list(admins)},
  },

  // Give this tag to servers.
  "tagOwners": {
    "tag:server": ["group:admins"],
  },

  "acls": [
    // Administrators reach everything.
    { "action": "accept", "src": ["group:admins"], "dst": ["*:*"] },
    // Everyone reaches their own devices.
    { "action": "accept", "src": ["autogroup:member"], "dst": ["autogroup:self:*"] },
    // Everyone reaches the websites on the servers.
    { "action": "accept", "src": ["autogroup:member"], "dst": ["tag:server:80,443"] },
  ],

  "ssh": [
    // Administrators log in to the servers.
    { "action": "accept", "src": ["group:admins"], "dst": ["tag:server"], "users": ["root", "autogroup:nonroot"] },
  ],

  "tests": [${adminTest(admins, "tag:server:22")}
    { "src": "tag:server", "deny": ["tag:server:22"] },
  ],
}
`,

  company: ({ admins, others }) => `{
  "groups": {
    "group:admins": ${list(admins)},
    "group:dev": ${list(others)},
  },

  // One tag for each environment, and one for each service that works in all of them.
  "tagOwners": {
    "tag:prod": ["group:admins"],
    "tag:staging": ["group:admins", "group:dev"],
    "tag:ci": ["group:admins"],
    "tag:monitoring": ["group:admins"],
  },

  "acls": [
    // Administrators reach everything.
    { "action": "accept", "src": ["group:admins"], "dst": ["*:*"] },
    // Everyone reaches their own devices.
    { "action": "accept", "src": ["autogroup:member"], "dst": ["autogroup:self:*"] },
    // Developers can reach everything in staging, but only websites in production.
    { "action": "accept", "src": ["group:dev"], "dst": ["tag:staging:*", "tag:prod:443"] },
    // Servers of one environment reach each other.
    { "action": "accept", "src": ["tag:prod"], "dst": ["tag:prod:*"] },
    { "action": "accept", "src": ["tag:staging"], "dst": ["tag:staging:*"] },
    // CI deploys to both environments.
    { "action": "accept", "src": ["tag:ci"], "dst": ["tag:staging:22", "tag:prod:22"] },
    // Monitoring collects metrics.
    { "action": "accept", "src": ["tag:monitoring"], "dst": ["tag:staging:9100", "tag:prod:9100"] },
  ],

  "ssh": [
    // Developers log in to staging; production needs an approval.
    { "action": "accept", "src": ["group:dev"], "dst": ["tag:staging"], "users": ["autogroup:nonroot"] },
    { "action": "check", "src": ["group:admins"], "dst": ["tag:prod"], "users": ["root", "autogroup:nonroot"] },
  ],

  // The environments cannot reach each other.
  "tests": [${adminTest(admins, "tag:prod:22", "tag:staging:22")}
    { "src": "tag:staging", "deny": ["tag:prod:22", "tag:prod:443"] },
    { "src": "tag:prod", "deny": ["tag:staging:22"] },
  ],
}
`,

  contractor: ({ admins, others }) => `{
  "groups": {
    "group:admins": ${list(admins)},
    "group:employees": ${list(others)},
    // Contractors belong here and to no other group.
    "group:contractors": [],
  },

  // Give tag:project to the servers that contractors work on.
  "tagOwners": {
    "tag:server": ["group:admins"],
    "tag:project": ["group:admins"],
  },

  "acls": [
    // Administrators reach everything.
    { "action": "accept", "src": ["group:admins"], "dst": ["*:*"] },
    // Employees reach their own devices and all servers.
    { "action": "accept", "src": ["group:employees"], "dst": ["autogroup:self:*", "tag:server:*", "tag:project:*"] },
    // Contractors reach the project and nothing else.
    { "action": "accept", "src": ["group:contractors"], "dst": ["tag:project:22,443"] },
  ],

  "ssh": [
    // Contractors log in to the project after an approval, and not as root.
    { "action": "check", "src": ["group:contractors"], "dst": ["tag:project"], "users": ["autogroup:nonroot"] },
  ],

  "tests": [${adminTest(admins, "tag:server:22", "tag:project:22")}
    { "src": "tag:project", "deny": ["tag:server:22"] },
  ],
}
`,
};
