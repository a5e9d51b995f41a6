import { plural } from "../plural";

/** Texts for changing the owner and the addresses of nodes. */
export const owner = {
  change: "Change owner",
  title: (name: string) => `Change the owner of ${name}`,
  titleMany: plural({ one: "Change the owner of # node", other: "Change the owner of # nodes" }),
  body: "The node keeps its name, addresses and key expiry. The policy rules for the new owner apply immediately.",
  bodyMany:
    "The nodes keep their names, addresses and key expiry. The policy rules for the new owner apply immediately.",
  tagged: plural({
    one: "# of the selected nodes is tagged. A tagged node has no owner, so it is not changed.",
    other: "# of the selected nodes are tagged. Tagged nodes have no owner, so they are not changed.",
  }),
  allTagged: "All selected nodes are tagged. Tagged nodes have no owner.",
  label: "New owner",
  choose: "Choose a user",
  noUsers: "There are no other users.",
  submit: "Change owner",
  submitMany: plural({ one: "Change owner of # node", other: "Change owner of # nodes" }),
  done: (name: string, user: string) => `${name} now belongs to ${user}`,
  doneMany: (n: number, user: string) => `${n === 1 ? "1 node now belongs" : `${n} nodes now belong`} to ${user}`,
  undone: (name: string, user: string) => `${name} moved back to ${user}`,
  undoneMany: plural({ one: "Owner restored for # node", other: "Owners restored for # nodes" }),
  undoFailed: "Couldn't restore all owners",
  failed: (name: string) => `Couldn't change the owner of ${name}`,
  /** When users are deleted. */
  fate: "Their nodes",
  fates: { delete: "Delete", move: "Move to another user" },
  moveTo: "Move their nodes to",
  stay: "Moved nodes stay in the network and keep their addresses. The policy rules for the new owner apply immediately.",
  notMoved: plural({
    one: "# node couldn't be moved, so no user was deleted",
    other: "# nodes couldn't be moved, so no user was deleted",
  }),
  left: (name: string, n: number) =>
    `${name} got ${n === 1 ? "a new node" : `${n} new nodes`} in the meantime, so no user was deleted`,
};

export const addresses = {
  title: "Addresses",
  ipv4: "IPv4",
  ipv6: "IPv6",
  change: "Change addresses",
  dialog: (name: string) => `Change addresses of ${name}`,
  body: "The addresses must be unused and within the address ranges of your network. The node keeps them until it is deleted or you change them again.",
  breaks: "Open connections to the old addresses break.",
  bad: (family: string) => `Not a valid ${family} address.`,
  taken: (name: string) => `${name} already has this address.`,
  submit: "Save addresses",
  done: (name: string) => `Addresses changed for ${name}`,
  undone: (name: string) => `Addresses restored for ${name}`,
  failed: (name: string) => `Couldn't change the addresses of ${name}`,
};

export const identifiers = {
  title: "Identifiers",
  note: "These keys are public.",
  id: "Node ID",
  nodeKey: "Node key",
  machineKey: "Machine key",
  discoKey: "Disco key",
  none: "None until the node connects",
};
