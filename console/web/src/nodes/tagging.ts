import type { Node } from "@/api";

export type Tagging = "addTags" | "removeTags" | "setTags";

/** The tags of a node after a change; null when the server will refuse it, because a node cannot lose its last tag. */
export function tagsAfter(node: Node, how: Tagging, tags: readonly string[]): string[] | null {
  const after =
    how === "setTags"
      ? [...tags]
      : how === "addTags"
        ? [...new Set([...node.tags, ...tags])]
        : node.tags.filter((tag) => !tags.includes(tag));
  return after.length === 0 && node.tags.length > 0 ? null : after.sort();
}

/** What a change of tags does to many nodes. */
export function taggingOf(nodes: readonly Node[], how: Tagging, tags: readonly string[]) {
  const changes = nodes.map((node) => ({ node, after: tagsAfter(node, how, tags) }));
  return {
    changed: changes.filter(({ node, after }) => after && after.join(" ") !== [...node.tags].sort().join(" ")),
    refused: changes.filter(({ after }) => after === null).length,
    /** Those that a user owns until they get their first tag. */
    leaving: changes.filter(({ node, after }) => node.tags.length === 0 && after && after.length > 0).length,
  };
}
