import { count, plural } from "../plural";

const on = { this: "on this device", peer: "on the peer", both: "on both devices" };
const of = { this: "This device is", peer: "The peer is", both: "Both devices are" };
const no = {
  this: "This device hasn't reported its NAT.",
  peer: "The peer hasn't reported its NAT.",
  both: "Neither device has reported its NAT.",
};
const mapped = {
  this: "This device's router has opened a port.",
  peer: "The peer's router has opened a port.",
  both: "The routers of both devices have opened a port.",
};
type Who = keyof typeof on;

/** The connectivity of one node: its network, and its connections to peers. */
export const connectivity = {
  findings: {
    title: "Findings",
    note: "From what the device reports",
    expired: "The key of this node has expired. It can't connect to its peers until it signs in again.",
    offline: "The device isn't connected to the server. The details below are the last that it reported.",
    unreported:
      "The device hasn't reported any network details yet, so the server can't tell how well it is connected.",
    noRelay:
      "The device has no home relay. Peers can reach it only directly. Check with “tailscale netcheck” that the device can reach a relay.",
    unknownRelay:
      "The home relay of this device is no longer in the relay map, so peers can't use it. The device chooses another when it connects to the server.",
    udp: "UDP is blocked, or no relay answered over UDP. Expect all traffic to be relayed, except in the local network. Allow outgoing UDP, and UDP port 3478 at the relay.",
    hardNat:
      "The device is behind a hard NAT. Traffic to peers that are also behind one is relayed, unless IPv6 works on both sides or one router supports port mapping (UPnP, NAT-PMP or PCP).",
    farRelay: (ms: string) =>
      `The home relay is ${ms} away. Relayed connections are slow. A relay closer to the device helps.`,
    fine: "The device reports no problem. If a connection is slow, check its path with the commands below.",
  },
  network: "Network (device-reported)",
  reported: "Last changed",
  endpoints: "Endpoints",
  noEndpoints: "None reported",
  kinds: { public: "Public", carrier: "Carrier NAT", local: "Local" },
  moreEndpoints: plural({ other: "Show all # endpoints" }),
  nat: "NAT",
  natEasy: "Easy: same external port for all peers",
  natHard: "Hard: different external port for each peer",
  portMapping: "Port mapping",
  portMapped: "Active: the router has opened a port",
  portOffered: (by: string) => `Offered by the router (${by}), but no port is open`,
  portNone: "None",
  udp: "UDP",
  udpYes: "Works",
  udpNo: "Blocked, or no relay answered",
  ipv6: "IPv6",
  ipv6Yes: "Works",
  ipv6No: "Not available",
  ipv4: "IPv4",
  ipv4Yes: (address: string) => `Public address ${address}`,
  ipv4No: "No public address reported",
  latency: "Relay latency",
  latencyRelay: "Relay",
  latencyTime: "Round trip",
  noLatency: "The device hasn't reported any latencies.",
  home: "home",
  allRelays: plural({ other: "Show all # relays" }),

  unknowable: {
    title: "Direct or relayed right now?",
    body: "The server can't tell: devices don't report which connections are direct or relayed, how fast they are, or the latency between peers. Ask the device itself:",
    commands: [
      { about: "Current connections of the device:", command: "tailscale status" },
      { about: "Path and latency to a peer (replace NAME):", command: "tailscale ping NAME" },
      { about: "UDP, NAT and relays, measured again:", command: "tailscale netcheck" },
    ],
    command: "command",
  },

  peers: {
    title: "Visible peers",
    summary: (all: number, online: number) => `${count(all)}, ${count(online)} online`,
    note: "Peers that a policy rule connects with this node. Whether a direct connection is likely is derived from what both devices last reported. It is not measured.",
    relayNote: "Relayed traffic goes through the home relay of the receiving device.",
    incomplete: plural({
      one: "# more node may be visible. It was not checked.",
      other: "# more nodes may be visible. They were not checked.",
    }),
    none: "No policy rule connects this node with any other node, so it sees no peers.",
    noMatch: "No peer matches.",
    expired: "Until this node signs in again, it sees no peers.",
    notAllowed: "Your API key needs the scope policy:read to show the peers.",
    failed: "Couldn't load the peers",
    filter: "Filter peers by name",
    choices: "Direct connection",
    all: (n: number) => `All ${count(n)}`,
    chances: { likely: "Likely", unlikely: "Unlikely", unknown: "Unknown" },
    counted: (word: string, n: number) => `${word} ${count(n)}`,
    columns: { peer: "Peer", relay: "Home relay", direct: "Direct connection", why: "Visible because" },
    sameRelay: "same relay",
    otherRelay: "different relay",
    noRelay: "None",
    directIs: { likely: "Direct likely", unlikely: "Direct unlikely", unknown: "Unknown" },
    why: {
      udp: (who: Who) => `UDP is blocked ${on[who]}, so traffic is relayed except in a shared local network.`,
      lan: (_: Who) => "Both seem to be in the same local network.",
      ipv6: (_: Who) => "IPv6 works on both devices.",
      portMapped: (who: Who) => mapped[who],
      hardBoth: (_: Who) => "Both devices are behind a hard NAT, so traffic goes through a relay.",
      hardOne: (who: Who) => `${of[who]} behind a hard NAT. It depends on what the other router allows through.`,
      easy: (_: Who) => "Neither device is behind a hard NAT.",
      unreported: (who: Who) => no[who],
    },
    line: "· line",
    reasons: {
      out: "this node can reach it",
      in: "it can reach this node",
      outRoute: (route: string) => `router of ${route}, which this node can reach`,
      inRoute: (route: string) => `router of ${route}, which can reach this node`,
      outInternet: "exit node that this node can use",
      inInternet: "exit node",
    },
    previous: "Previous",
    next: "Next",
    range: (from: number, to: number, all: number) => `${count(from)}–${count(to)} of ${count(all)}`,
    pages: "Pages of peers",
  },
};
