import { useMemo } from "react";
import { type Node, useHosts } from "@/api";
import { termsOf } from "@/filter";
import { keyName } from "@/keys/facts";
import { isExitRoute, newestVersion, shortVersion, systemName } from "@/nodes";
import { compareText, text } from "@/text";
import { FilterButton, FilterGroups } from "@/ui";

const t = text.nodes.filters;

interface Props {
  nodes: readonly Node[];
  value: string;
  onChange(value: string): void;
}

export const NodeFilterMenu = (props: Props) => (
  <FilterButton>
    <Groups {...props} />
  </FilterButton>
);

const groups: [string, string[]][] = [
  [t.state, ["is:online", "is:offline", "is:expired", "is:unapproved", "is:waiting"]],
  [t.kind, ["is:exit", "is:router", "is:ephemeral"]],
  [t.seen, ["seen:>30d", "seen:>90d"]],
];

/** The menu's groups, computed when it opens: with thousands of nodes, that is too slow for every keystroke. */
function Groups({ nodes, value, onChange }: Props) {
  const { data: hosts } = useHosts(true);
  const { more, words } = useMemo(() => {
    const relays = [...(hosts?.values() ?? [])].map((host) => host.relay?.code ?? "");
    return offers(nodes, relays);
  }, [nodes, hosts]);
  return <FilterGroups groups={groups} more={more} words={words} value={value} onChange={onChange} />;
}

/** Filter terms that match some of the nodes, and what they mean. */
export function offers(nodes: readonly Node[], relays: readonly string[]) {
  const systems = sorted(nodes.map((node) => node.os.toLowerCase()));
  const versions = sorted(nodes.map((node) => shortVersion(node.clientVersion))).reverse();
  const owners = nodes.filter((node) => node.tags.length === 0).map((node) => node.user?.name ?? "");
  const routes = nodes.flatMap((node) => node.availableRoutes).filter((route) => !isExitRoute(route));
  const keys = nodes.flatMap(({ preAuthKey }) => (preAuthKey ? [keyName(preAuthKey)] : []));
  const newest = newestVersion(nodes);
  const older = versions.length > 1 ? [`version:<${newest}`] : [];
  const more: [string, string[]][] = [
    [
      t.tags,
      termsOf(
        "tag",
        sorted(nodes.flatMap((node) => node.tags)).map((tag) => tag.replace(/^tag:/, "")),
      ),
    ],
    [t.owner, termsOf("user", sorted(owners))],
    [t.system, termsOf("os", systems)],
    [t.version, [...older, ...termsOf("version", versions)]],
    [t.relay, termsOf("relay", sorted(relays))],
    [t.route, termsOf("route", sorted(routes))],
    [t.key, termsOf("key", sorted(keys))],
  ];
  const words = {
    ...t.words,
    ...Object.fromEntries(systems.map((os) => [`os:${os}`, systemName(os)])),
    ...Object.fromEntries(older.map((term) => [term, t.older])),
  };
  return { more, words };
}

const sorted = (values: readonly string[]) => [...new Set(values)].sort(compareText);
