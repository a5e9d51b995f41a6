export const dnsPage = {
  base: "Base domain",
  baseHint: "Node names end with this domain. You can change it only in the server's configuration.",
  noBase: "None, so nodes have no DNS names. Set dns.base_domain in the server's configuration.",
  magic: "MagicDNS",
  onOff: { on: "On", off: "Off" },
  magicHint: "Devices can reach nodes by name.",
  fields: {
    nameservers: "Nameservers",
    searchDomains: "Search domains",
    split: "Split DNS",
    extraRecords: "Extra records",
  },
  hints: {
    nameservers: "One per line: an IP address or an https URL. If empty, devices keep their own nameservers.",
    searchDomains: "One per line. Short names are looked up in the base domain first, then in these domains.",
    split:
      "One domain per line, followed by its nameservers, for example: corp.example.com 10.1.0.53. Without nameservers, only the extra records below answer for the domain.",
    extraRecords:
      "One per line: a name, A or AAAA, and an address, for example: grafana.mesh.example.com A 100.64.0.7.",
  },
  line: (line: number, why: string) => `Line ${line}: ${why}`,
  bad: {
    record: "enter a name, A or AAAA, and an address.",
    twice: (domain: string) => `${domain} is listed twice.`,
  },
  source: {
    config: "These settings come from the server's configuration.",
    api: "These settings were changed here. The server's configuration is ignored until you reset them.",
  },
  changed: (when: string) => `Last changed ${when}.`,
  pinned: "These settings are pinned in the server's configuration (dns.pinned) and can be changed only there.",
  save: "Save changes",
  discard: "Discard changes",
  unsaved: "Unsaved changes. Connected devices receive them within seconds after you save.",
  saved: "DNS settings saved",
  failed: "Couldn't save the DNS settings",
  reset: {
    open: "Reset to configuration",
    title: "Reset the DNS settings?",
    body: "Devices immediately switch to the settings in the server's configuration. All changes made here are lost.",
    submit: "Reset DNS settings",
    done: "DNS settings reset to the server's configuration",
    failed: "Couldn't reset the DNS settings",
  },
  conflict: {
    title: "Someone else changed these settings",
    by: (who: string, when: string) => `${who} changed these settings ${when}`,
  },
};
