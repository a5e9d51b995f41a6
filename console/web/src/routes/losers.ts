import type { AccessMap } from "@/api";
import { compareText } from "@/nodes/facts";
import { printable } from "@/text";

export const internet = "autogroup:internet";

/** Nodes that the policy lets use a path; of a large network maybe not all of them. */
export interface Users {
  names: readonly string[];
  complete: boolean;
}

/** Who may use a network or the internet, by an answer that tells all nodes apart. Its router needs no path to it. */
export function usersOf(map: AccessMap, target: string, routerId: string): Users {
  const names = map.cells.flatMap((cell) => {
    const [from, to] = [map.from[cell.from], map.to[cell.to]];
    return from?.kind === "node" && from.id !== routerId && to?.name === target ? [printable(from.name)] : [];
  });
  return { names: [...new Set(names)].sort(compareText), complete: map.moreFrom + map.moreTo + map.moreCells === 0 };
}
