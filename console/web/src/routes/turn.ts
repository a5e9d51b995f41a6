import { useMemo } from "react";
import { useNodeWrites } from "@/nodes/writes";
import { printable, text } from "@/text";
import { useStatus } from "@/ui";
import { type Asked, byNode, lossOf, type RouteRow } from "./facts";

const t = text.node.routes;
const mostReasons = 8;

export const routerOf = (row: RouteRow) => printable(row.node.givenName);
export const labelOf = (row: RouteRow) => (row.route.exit ? t.exit : row.prefix);
export const namesOf = (nodes: readonly { givenName: string }[]) => nodes.map((node) => printable(node.givenName));

/** Switches routes, reports which ones failed and why with an option to retry these, and offers to undo the others. */
export function useTurn() {
  const writes = useNodeWrites();
  const status = useStatus();
  return useMemo(() => {
    const run = async (
      rows: readonly RouteRow[],
      on: boolean,
      words: (done: readonly RouteRow[]) => string,
      back: boolean,
    ) => {
      const done: RouteRow[] = [];
      const failed: { row: RouteRow; error: unknown }[] = [];
      for (const group of byNode(rows)) {
        const [first] = group;
        if (!first) continue;
        try {
          await writes.switchRoute(
            first.node,
            group.flatMap((row) => row.route.prefixes),
            on,
          );
          done.push(...group);
        } catch (error) {
          failed.push(...group.map((row) => ({ row, error })));
        }
      }
      if (done.length > 0) status.done(words(done), back ? undefined : () => void run(done, !on, undoneWords, true));
      if (failed.length === 0) return;
      const again = failed.map(({ row }) => row);
      const [only] = failed;
      const one = rows.length === 1 && only;
      status.failed(
        one ? t.failed(routerOf(one.row)) : t.failedMany(failed.length, rows.length),
        one ? one.error : reasons(failed),
        { label: one ? text.common.retry : t.retry(failed.length), run: () => void run(again, on, words, back) },
      );
    };
    return ({ rows, on, all }: Asked) => run(rows, on, (done) => turnedWords(done, on, all), false);
  }, [writes, status]);
}

const undoneWords = (rows: readonly RouteRow[]) =>
  rows.length === 1 && rows[0] ? t.undone(routerOf(rows[0])) : t.undoneMany(rows.length);

/** Describes the result of switching routes. */
export function turnedWords(rows: readonly RouteRow[], on: boolean, all: readonly RouteRow[]): string {
  const [row] = rows;
  if (!row || rows.length > 1) return on ? t.approvedMany(rows.length) : t.disabledMany(rows.length);
  const name = routerOf(row);
  if (row.route.exit) return on ? t.exitOn(name) : t.exitOff(name);
  if (on) return t.approved(row.prefix, name);
  const next = namesOf(lossOf(row, all, rows)?.next ?? []);
  return next.length > 0 ? t.takesOver(row.prefix, name, next) : t.disabled(row.prefix, name);
}

/** Each failed route, with the reason. */
export function reasons(failed: readonly { row: RouteRow; error: unknown }[]): string {
  const told = failed
    .slice(0, mostReasons)
    .map(({ row, error }) => `${labelOf(row)}, ${routerOf(row)}: ${error instanceof Error ? error.message : ""}`);
  if (failed.length > mostReasons) told.push(text.nodes.many.more(failed.length - mostReasons));
  return told.join(" · ");
}
