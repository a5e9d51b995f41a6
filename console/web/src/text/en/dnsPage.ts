export const dnsPage = {
  base: "Base domain",
  baseHint: "What the names of nodes end with. It comes from the configuration of the server alone.",
  noBase: "None: nodes have no names in DNS. Set dns.base_domain in the configuration of the server.",
  magic: "MagicDNS",
  onOff: { on: "On", off: "Off" },
  magicHint: "Devices resolve the names of nodes by themselves.",
  fields: {
    nameservers: "Nameservers",
    searchDomains: "Search domains",
    split: "Split DNS",
    extraRecords: "Records",
  },
  hints: {
    nameservers: "One on each line: an address or an https URL. Without any, devices keep their own.",
    searchDomains: "One on each line. They are tried after the base domain for short names.",
    split:
      "One domain on each line, then its nameservers: corp.example.com 10.1.0.53. Without any, only the records below answer for it.",
    extraRecords: "One on each line, with A or AAAA and an address: grafana.mesh.example.com A 100.64.0.7.",
  },
  line: (line: number, why: string) => `Line ${line}: ${why}`,
  bad: {
    record: "write a name, A or AAAA, and an address.",
    twice: (domain: string) => `${domain} is there twice.`,
  },
  source: {
    config: "These are the settings of the server's configuration.",
    api: "Changed here. The configuration of the server is not looked at until it is reset.",
  },
  changed: (when: string) => `Last change ${when}.`,
  pinned: "The configuration of the server pins these settings (dns.pinned), so that they can be changed only there.",
  save: "Save changes",
  discard: "Discard",
  unsaved: "Not saved yet. Connected devices learn a change within moments.",
  saved: "The settings of DNS are saved.",
  failed: "The settings of DNS were not saved",
  reset: {
    open: "Reset to configuration",
    title: "Reset the settings of DNS?",
    body: "Devices take the settings of the server's configuration at once, and all that was changed here is forgotten.",
    submit: "Reset DNS",
    done: "The settings of DNS are those of the configuration again.",
    failed: "The settings of DNS were not reset",
  },
  conflict: {
    title: "Somebody else changed these settings meanwhile",
    by: (who: string, when: string) => `${who} changed these settings ${when}`,
  },
};
