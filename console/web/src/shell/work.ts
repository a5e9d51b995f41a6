import { Hourglass, type LucideIcon, Pencil, Tag, TimerOff, Trash2 } from "lucide-react";
import type { Node } from "@/api";
import { byName } from "@/nodes";
import type { NodeAction } from "@/nodes/dialogs";
import { printable, text } from "@/text";
import type { Entry } from "./entries";

interface Verb {
  name: keyof typeof text.shell.work;
  icon: LucideIcon;
  /** Whether the action applies to this node. */
  fits(node: Node): boolean;
  action(node: Node): NodeAction;
}

const verbs: Verb[] = [
  { name: "rename", icon: Pencil, fits: () => true, action: (node) => ({ name: "rename", node }) },
  { name: "tags", icon: Tag, fits: () => true, action: (node) => ({ name: "tags", node }) },
  {
    name: "expire",
    icon: Hourglass,
    fits: (node) => !node.expired,
    action: (node) => ({ name: "expire", nodes: [node] }),
  },
  {
    name: "setExpiry",
    icon: Hourglass,
    fits: () => true,
    action: (node) => ({ name: "setExpiry", node }),
  },
  {
    name: "neverExpire",
    icon: TimerOff,
    fits: (node) => Boolean(node.expiry),
    action: (node) => ({ name: "neverExpire", node }),
  },
  { name: "delete", icon: Trash2, fits: () => true, action: (node) => ({ name: "delete", nodes: [node] }) },
];

/** The minimum number of letters of a verb: fewer could just as well be the start of a name. */
const leastOfVerb = 3;
const most = 8;

/**
 * Actions on the nodes in the query: "rename db" offers it for each node with a matching name; the name or address of a
 * single node offers all its actions.
 */
export function nodeWork(nodes: readonly Node[], query: string, start: (action: NodeAction) => void): Entry[] {
  const [first = "", ...rest] = query.split(/\s+/);
  const named = first.length < leastOfVerb ? [] : verbs.filter((v) => wordsOf(v).some((w) => w.startsWith(first)));
  const meant = named.length > 0 ? startingFirst(nodes, rest.join(" ")) : onlyOne(nodes, query);
  return meant
    .flatMap((node) =>
      (named.length > 0 ? named : verbs)
        .filter((verb) => verb.fits(node))
        .map(
          (verb): Entry => ({
            id: `${verb.name}:${node.id}`,
            title: text.shell.work[verb.name].title(printable(node.givenName)),
            words: "",
            icon: verb.icon,
            group: text.shell.paletteGroups.work,
            passing: true,
            run: () => start(verb.action(node)),
          }),
        ),
    )
    .slice(0, most);
}

const wordsOf = (verb: Verb) => text.shell.work[verb.name].words;

function startingFirst(nodes: readonly Node[], name: string): Node[] {
  const begins = (node: Node) => (node.givenName.startsWith(name) ? 0 : 1);
  return nodes.filter((node) => node.givenName.includes(name)).sort((a, b) => begins(a) - begins(b) || byName(a, b));
}

function onlyOne(nodes: readonly Node[], query: string): Node[] {
  if (!query) return [];
  const exact = nodes.filter((node) => node.givenName === query || node.ipAddresses.includes(query));
  if (exact.length > 0) return exact;
  const found = nodes.filter((node) => node.givenName.includes(query));
  return found.length === 1 ? found : [];
}
