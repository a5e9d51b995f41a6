import { plural } from "../plural";

const pairs = plural({ one: "# pair", other: "# pairs" });

/** Texts of the policy editor's find bar, templates, rule form and cards of the effect. */
export const policyForms = {
  effect: {
    keepSome: plural({ one: "# keeps access on other ports", other: "# keep access on other ports" }),
    hadSome: plural({ one: "# had access on other ports", other: "# had access on other ports" }),
    forPairs: (what: string, n: number) => `${what}: ${pairs(n)}`,
    concerns: (names: string) => `Affects ${names}`,
  },

  find: {
    label: "Find and replace",
    find: "Find",
    replace: "Replace with",
    matchCase: "Match case",
    previous: "Previous",
    next: "Next",
    replaceOne: "Replace",
    replaceAll: "Replace all",
    close: "Close",
    none: "No results",
    places: (at: number, all: number, more: boolean) => {
      const count = `${all.toLocaleString("en")}${more ? "+" : ""}`;
      return at > 0 ? `${at.toLocaleString("en")} of ${count}` : `${count} found`;
    },
  },

  templates: {
    open: "Templates",
    title: "Start from a template",
    about: "The template replaces the text in the editor as a draft. Nothing is saved until you review it.",
    choose: "Template",
    preview: "Template text",
    submit: "Use template",
    used: (name: string) => `Draft replaced with the template: ${name}`,
    names: {
      home: "Home",
      team: "Small team with servers",
      company: "Company with environments",
      contractor: "Company with contractors",
    },
    summaries: {
      home: "Everyone can reach their own devices and shared ones, such as a NAS or a printer.",
      team: "Administrators can reach everything. Everyone can reach their own devices and the websites on the servers.",
      company:
        "Developers can reach everything in staging, but only websites in production. Environments can't reach each other.",
      contractor: "Employees can reach the servers. Contractors can reach one project and nothing else.",
    },
  },

  rule: {
    open: "Add rule",
    title: "Add a rule",
    about: "Who can reach what, and on which ports. The rest of the policy does not change.",
    who: "Who",
    whoHint: "User, group, tag or node",
    what: "Can reach",
    whatHint: "Tag, node, user, host or network",
    ports: "Ports",
    portsHint: "22 or 80,443 or 8000-8100",
    allPorts: "All ports",
    proto: "Protocol",
    protos: { "": "Any", tcp: "TCP", udp: "UDP", icmp: "ICMP" },
    comment: "Comment",
    commentHint: "Optional",
    commentAbout: "Rules don't expire. For temporary access, note the end date here and remove the rule then.",
    preview: "Rule to insert",
    submit: "Insert rule",
    close: "Close form",
    inserted: "Rule inserted",
    options: "Suggestions",
    added: (names: string) => `${names} added`,
    remove: (name: string) => `Remove ${name}`,
    removed: (name: string) => `${name} removed`,
    missing: "Enter at least one name.",
    badPorts: "Enter ports from 1 to 65535, such as 22 or 80,443 or 8000-8100.",
    broken: "Fix the problems in the text first, then insert the rule.",
  },
};
