import { useMemo } from "react";
import type { Node } from "@/api";
import { systemName } from "@/nodes";
import { text } from "@/text";
import { FilterMenu } from "@/ui";

const t = text.nodes.filters;

export function NodeFilterMenu({
  nodes,
  value,
  onChange,
}: {
  nodes: readonly Node[];
  value: string;
  onChange(value: string): void;
}) {
  const tags = useMemo(() => [...new Set(nodes.flatMap((node) => node.tags))].sort().slice(0, 30), [nodes]);
  const systems = useMemo(
    () => [...new Set(nodes.map((node) => node.os.toLowerCase()).filter(Boolean))].sort().slice(0, 8),
    [nodes],
  );
  const groups: [string, string[]][] = [
    [t.state, ["is:online", "is:offline", "is:expired", "is:waiting"]],
    [t.kind, ["is:exit", "is:router", "is:ephemeral"]],
    [t.seen, ["seen:>30d", "seen:>90d"]],
    [t.system, systems.map((os) => `os:${os}`)],
    [t.tags, tags],
  ];
  const words = { ...t.words, ...Object.fromEntries(systems.map((os) => [`os:${os}`, systemName(os)])) };
  return <FilterMenu groups={groups} words={words} value={value} onChange={onChange} />;
}
