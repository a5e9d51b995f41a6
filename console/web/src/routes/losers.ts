import type { AccessMap, Node } from "@/api";
import { compareText, printable } from "@/text";

export const internet = "autogroup:internet";

/** Nodes that may use a path according to the policy; in a large network, possibly not all of them. */
export interface Users {
  names: readonly string[];
  complete: boolean;
}

/**
 * Who may use a network or the internet through a router, according to an access map by node. The router itself needs
 * no path, and a rule may be limited to routers with certain tags (via).
 */
export function usersOf(map: AccessMap, target: string, router: Node): Users {
  const leads = (via: readonly string[]) => via.length === 0 || via.some((tag) => router.tags.includes(tag));
  const names = map.cells.flatMap((cell) => {
    const [from, to] = [map.from[cell.from], map.to[cell.to]];
    const uses = cell.rules.some(({ rule }) => leads(map.rules[rule]?.via ?? []));
    return from?.kind === "node" && from.id !== router.id && to?.name === target && uses ? [printable(from.name)] : [];
  });
  return { names: [...new Set(names)].sort(compareText), complete: map.moreFrom + map.moreTo + map.moreCells === 0 };
}
