import type { Node } from "@/api";

export type Tagging = "addTags" | "removeTags" | "setTags";

/** The tags of a node after a change; null if the server will refuse it, because a node cannot lose its last tag. */
export function tagsAfter(node: Node, how: Tagging, tags: readonly string[]): string[] | null {
  const after =
    how === "setTags"
      ? [...tags]
      : how === "addTags"
        ? [...new Set([...node.tags, ...tags])]
        : node.tags.filter((tag) => !tags.includes(tag));
  return after.length === 0 && node.tags.length > 0 ? null : after.sort();
}

/** The effect of a tag change on many nodes. */
export function taggingOf(nodes: readonly Node[], how: Tagging, tags: readonly string[]) {
  const changes = nodes.map((node) => ({ node, after: tagsAfter(node, how, tags) }));
  return {
    changed: changes.filter(({ node, after }) => after && after.join(" ") !== sorted(node.tags)),
    refused: changes.filter(({ after }) => after === null).length,
    /** Nodes that belong to a user until they get their first tag. */
    leaving: changes.filter(({ node, after }) => node.tags.length === 0 && after && after.length > 0).length,
  };
}

/** The result of a tag change on one node. */
export interface TagChange {
  node: Node;
  after: string[] | null;
}

/**
 * The nodes that get their previous tags back when a change is undone, grouped by those tags. A node that had no tags
 * cannot get that state back, and changes that somebody has made since are kept.
 */
export function takenBackBy(changed: readonly TagChange[], now: (id: string) => Node | undefined): Node[][] {
  const together = new Map<string, Node[]>();
  for (const { node, after } of changed) {
    const before = sorted(node.tags);
    const current = now(node.id);
    if (node.tags.length === 0 || !current) continue;
    // The page may not have received the result of the change yet.
    if (![before, sorted(after ?? [])].includes(sorted(current.tags))) continue;
    together.set(before, [...(together.get(before) ?? []), node]);
  }
  return [...together.values()];
}

const sorted = (tags: readonly string[]) => [...tags].sort().join(" ");
