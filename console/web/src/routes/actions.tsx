import { useQueryClient } from "@tanstack/react-query";
import { createContext, lazy, type ReactNode, Suspense, useCallback, useContext, useState } from "react";
import { apiKeysQuery, nodesQuery, useCan, useSession } from "@/api";
import { text } from "@/text";
import { useStatus } from "@/ui";
import { type Asked, byNetwork, dangersOf, isWaiting, lossOf, type RouteRow, routeRows } from "./facts";
import { useTurn } from "./turn";

const Question = lazy(() => import("./Question"));

type Start = (on: boolean, which: (row: RouteRow) => boolean) => void;

const Context = createContext<Start>(() => {});
/** `const turn = useTurnRoutes(); turn(true, (row) => row.id === id)` */
export const useTurnRoutes = () => useContext(Context);

/**
 * Approves and disables routes for the page inside, wherever its switches and buttons are. A single route is switched
 * at once unless that cuts off a path or affects another; several are listed first.
 */
export function RouteActionsProvider({ children }: { children: ReactNode }) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const client = useQueryClient();
  const ownAddress = useOwnAddress();
  const turn = useTurn();
  const status = useStatus();
  const start = useCallback<Start>(
    (on, which) => {
      const begin = async () => {
        // Only the complete list of nodes shows who takes over and what overlaps.
        const held = client.getQueryData(nodesQuery.queryKey);
        const all = routeRows((held?.complete ? held : await client.fetchQuery(nodesQuery)).items);
        const rows = all.filter((row) => which(row) && isWaiting(row) === on).sort(byNetwork);
        const question = { on, rows, all, own: on ? await ownAddress() : "" };
        if (asks(question)) setAsked(question);
        else if (rows.length > 0) await turn(question);
      };
      begin().catch((error) => status.failed(text.node.routes.unread, error));
    },
    [client, ownAddress, turn, status],
  );
  return (
    <Context value={start}>
      {children}
      {asked && (
        <Suspense fallback={<span data-layer hidden />}>
          {/* Do not close a question that was opened in the meantime: the call for this one may end late. */}
          <Question asked={asked} onClose={() => setAsked((now) => (now === asked ? null : now))} />
        </Suspense>
      )}
    </Context>
  );
}

/** Whether the person has to confirm first. */
export function asks({ on, rows, all, own }: Asked): boolean {
  const [row] = rows;
  if (!row || rows.length > 1) return rows.length > 1;
  if (!on) return lossOf(row, all, rows)?.cuts ?? false;
  const dangers = dangersOf(row, all, own);
  return dangers.inUse.length > 0 || dangers.own;
}

/**
 * The IP address from which this session's key was last used. Empty if the key may not read API keys; then there is no
 * warning.
 */
function useOwnAddress(): () => Promise<string> {
  const { key } = useSession();
  const client = useQueryClient();
  const may = useCan()("apikeys:read");
  return useCallback(async () => {
    const read = may ? await client.ensureQueryData(apiKeysQuery).catch(() => undefined) : undefined;
    return read?.items.find((each) => each.prefix === key.prefix)?.lastUsedFrom ?? "";
  }, [client, may, key.prefix]);
}
