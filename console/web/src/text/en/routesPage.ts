import { plural } from "../plural";

export const routesPage = {
  list: { subnets: "Subnet routes", exits: "Exit nodes" },
  tabs: { subnets: "Subnets", exits: "Exit nodes" },
  columns: {
    network: "Network",
    router: "Router",
    node: "Node",
    state: "State",
    note: "Remarks",
    owner: "Owner or tags",
    approved: "Approved",
  },
  filterLabel: "Filter routes",
  filterPlaceholder: { subnets: "10.20.0.0/16, router, is:waiting", exits: "Node, tag:router, is:waiting" },
  groups: { waiting: "Waiting for approval", rest: "Everything else" },
  emptySubnetsTitle: "No subnet routes yet",
  emptySubnetsBody:
    "Run sudo tailscale set --advertise-routes=10.20.0.0/16 on a node in that network. The route appears here and waits until you approve it.",
  emptyExitsTitle: "No exit nodes yet",
  emptyExitsBody:
    "Run sudo tailscale set --advertise-exit-node on a node. It appears here and waits until you approve it; then others can use it as their way to the internet.",
  states: {
    waiting: "Waiting",
    serving: "In service",
    standby: "Standby",
    offline: "Offline",
    unoffered: "Not offered",
  },
  overlaps: (prefixes: readonly string[]) => `Overlaps ${prefixes.join(", ")}`,
  autoApproved: (by: string, prefix: string) => `The policy approves ${prefix} for ${by}`,
  autoApprovedExit: (by: string) => `The policy approves exit nodes of ${by}`,
  approve: (prefix: string, node: string) => `Approve ${prefix} through ${node}`,
  exit: "the internet",
  approveAll: (n: number) => `Approve all waiting (${n})`,
  all: {
    title: plural({ one: "Approve # route?", other: "Approve # routes?" }),
    body: "Nodes that the policy lets may use these from now on:",
    submit: plural({ one: "Approve # route", other: "Approve # routes" }),
    done: plural({ one: "# route is approved.", other: "# routes are approved." }),
    partly: (ok: number, bad: number) => `${ok} approved; ${bad} failed`,
    retry: (n: number) => `Retry these ${n}`,
  },
  sure: {
    title: (prefix: string, node: string) => `Approve ${prefix} through ${node}?`,
    overlaps: (prefixes: readonly string[]) =>
      `It overlaps ${prefixes.join(", ")}, which is in use: the smaller network wins, and traffic for the addresses of both goes another way from now on.`,
    own: (address: string) =>
      `It holds ${address}, from where you use this console: your own way to it may lead through this router from now on.`,
    submit: "Approve route",
  },
  disable: {
    title: (prefix: string) => `Disable ${prefix}?`,
    titleExit: (node: string) => `Disable the exit node ${node}?`,
    lost: (prefix: string) =>
      `No other router serves ${prefix}: every node that the policy lets loses the path to it at once.`,
    lostExit: "Nodes that use it lose their way to the internet at once, until they choose another exit node.",
    policy: "The policy does not approve it again by itself.",
    submit: "Disable route",
    submitExit: "Disable exit node",
    takesOver: (prefix: string, node: string, other: string) =>
      `${prefix} is disabled through ${node}; ${other} serves it.`,
  },
  panel: {
    routers: "Routers",
    history: "Who served it",
    noHistory: "Nobody has served it yet.",
    exitHistory: "Exit nodes all serve at the same time, so that there is no history.",
    preference: (node: string) => `Preference of ${node}`,
    preferenceTitle: "Preference",
    preferenceHint: "When the network needs another router, the one with the greatest is chosen. From -1000 to 1000.",
    preferenceBad: "Give a whole number from -1000 to 1000.",
    save: "Save",
    saved: (node: string) => `The preference of ${node} is saved.`,
    saveFailed: (node: string) => `The preference of ${node} was not saved`,
    forget: "Forget route",
    forgotten: (prefix: string) => `${prefix} is forgotten.`,
    forgetFailed: (prefix: string) => `${prefix} was not forgotten`,
    overlaps: "Overlapping networks",
    policy: "Policy",
  },
};
