import { plural } from "../plural";

/** Texts of the access page: the form that checks access, and how to read the map. */
export const accessView = {
  ask: {
    about: "Check whether one node, user, group or tag can reach another, and which rule decides.",
    unknown: (name: string) => `No node, user, group, tag or address is called ${name}.`,
    network: (prefix: string) => `${prefix} is a network. Enter one address in it.`,
    autogroup: (name: string) => `${name} can't be checked. Enter a node, user, group or tag.`,
    offline: (name: string, ago: string) =>
      `${name} is offline (last seen ${ago}). Until it is back online, it can't be reached and can't reach other nodes.`,
    instead: "Did you mean",
    options: "Suggestions",
  },
  cell: {
    share: (part: string) => `${part} of pairs`,
    little: "<1%",
  },
  legend: {
    title: "Legend",
    all: "All pairs of nodes have access",
    some: "Some pairs have access",
    none: "No access",
    matrixPairs: "A pair is one source node and one destination node",
    severalTags: "Nodes with several tags count under each tag",
    path: "Thicker path: more pairs of nodes",
    nodes: "The number after a name counts its nodes",
    gained: "Gained in draft",
    lost: "Lost in draft",
    changed: "Changed in draft",
  },
  routes: {
    name: plural({ one: "# network", other: "# networks" }),
    collapsed: plural({ one: "# network is shown as one.", other: "# networks are shown as one." }),
    expand: "Show each network",
    collapse: "Combine networks",
  },
  flow: {
    largest: (shown: number, all: number) => `The ${shown} largest of ${all.toLocaleString("en")} paths are shown.`,
    more: "Show more",
    fewer: "Show fewer",
  },
  matrix: {
    connectedFirst: "Nodes with the most access come first.",
  },
  user: {
    noDevices: (name: string) => `${name} has no devices yet. This is what the policy allows once ${name} adds one.`,
    expired: (name: string) => `All devices of ${name} have expired. They have no access until they sign in again.`,
    first: {
      nothing: "No rule lets a device of this user reach anything.",
      nobody: "No rule lets anything reach a device of this user.",
    },
  },
};
