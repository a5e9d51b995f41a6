import { useQuery } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useMemo, useState } from "react";
import { apiKeysQuery, useCan, useSession } from "@/api";
import { withRoute } from "@/nodes/routes";
import { useNodeWrites } from "@/nodes/writes";
import { printable, text } from "@/text";
import { words as t } from "@/text/routes";
import { ApiCall, Confirm, useStatus } from "@/ui";
import { dangersOf, type RouteRow } from "./facts";

export type RouteAction = { name: "turn"; row: RouteRow; on: boolean } | { name: "all"; rows: readonly RouteRow[] };

const Context = createContext<(action: RouteAction) => void>(() => {});
export const useRouteActions = () => useContext(Context);

const nameOf = (row: RouteRow) => printable(row.node.givenName);
export const labelOf = (row: RouteRow) => (row.route.exit ? t.exit : row.prefix);

/** Where the person sits, as far as the server knows: from where this session's key was last used. */
function useOwnAddress(): string {
  const { key } = useSession();
  const { data } = useQuery({ ...apiKeysQuery, enabled: useCan()("apikeys:read") });
  return data?.items.find((each) => each.prefix === key.prefix)?.lastUsedFrom ?? "";
}

/** Turns switches for the page inside; it asks only where a path is lost or another one bends. */
export function RouteActionsProvider({ rows, children }: { rows: readonly RouteRow[]; children: ReactNode }) {
  const [asked, setAsked] = useState<RouteAction | null>(null);
  const own = useOwnAddress();
  const turn = useTurn();
  const start = useMemo(
    () => (action: RouteAction) => {
      if (action.name === "turn") {
        const dangers = dangersOf(action.row, rows, own);
        const asks = action.on ? dangers.inUse.length > 0 || dangers.own : losesPath(action.row);
        if (!asks) return void turn(action.row, action.on);
      }
      setAsked(action);
    },
    [rows, own, turn],
  );
  const close = () => setAsked(null);
  return (
    <Context value={start}>
      {children}
      {asked?.name === "all" && <ApproveAll rows={asked.rows} onClose={close} />}
      {asked?.name === "turn" && asked.on && <Sure row={asked.row} rows={rows} own={own} onClose={close} />}
      {asked?.name === "turn" && !asked.on && <Disable row={asked.row} onClose={close} />}
    </Context>
  );
}

const losesPath = (row: RouteRow) => row.route.state === "serving" && takesOver(row) === undefined;
const takesOver = (row: RouteRow) => row.route.others.find((node) => node.online && !node.expired);

/** Turns one switch, and offers to turn it back. */
function useTurn() {
  const writes = useNodeWrites();
  const status = useStatus();
  return useMemo(
    () => async (row: RouteRow, on: boolean) => {
      const { node, route } = row;
      const name = nameOf(row);
      const label = labelOf(row);
      const failed = (error: unknown) => status.failed(text.node.routes.failed(name), error);
      try {
        await writes.switchRoute(node, route.prefixes, on);
        const other = takesOver(row);
        const words = text.node.routes;
        const done = route.exit
          ? on
            ? words.exitOn(name)
            : words.exitOff(name)
          : on
            ? words.approved(label, name)
            : route.state === "serving" && other
              ? t.disable.takesOver(label, name, printable(other.givenName))
              : words.disabled(label, name);
        status.done(done, () =>
          writes.switchRoute(node, route.prefixes, !on).then(() => status.done(text.node.routes.undone(name)), failed),
        );
      } catch (error) {
        failed(error);
      }
    },
    [writes, status],
  );
}

function callOf(row: RouteRow, on: boolean) {
  const routes = withRoute(row.node.approvedRoutes, row.route.prefixes, on);
  return <ApiCall method="post" path={`/api/v1/node/${row.node.id}/approve_routes`} body={{ routes }} />;
}

function Sure({ row, rows, own, onClose }: { row: RouteRow; rows: readonly RouteRow[]; own: string; onClose(): void }) {
  const turn = useTurn();
  const dangers = dangersOf(row, rows, own);
  return (
    <Confirm
      danger={false}
      title={t.sure.title(row.prefix, nameOf(row))}
      submit={t.sure.submit}
      call={callOf(row, true)}
      onClose={onClose}
      onSubmit={() => {
        onClose();
        void turn(row, true);
      }}
    >
      {dangers.inUse.length > 0 && <p>{t.sure.overlaps(dangers.inUse)}</p>}
      {dangers.own && <p>{t.sure.own(own)}</p>}
    </Confirm>
  );
}

function Disable({ row, onClose }: { row: RouteRow; onClose(): void }) {
  const turn = useTurn();
  const { exit } = row.route;
  return (
    <Confirm
      title={exit ? t.disable.titleExit(nameOf(row)) : t.disable.title(row.prefix)}
      submit={exit ? t.disable.submitExit : t.disable.submit}
      call={callOf(row, false)}
      onClose={onClose}
      onSubmit={() => {
        onClose();
        void turn(row, false);
      }}
    >
      <p>
        {exit ? t.disable.lostExit : t.disable.lost(row.prefix)} {t.disable.policy}
      </p>
    </Confirm>
  );
}

/** All that waits, listed before it is approved; what fails can be tried again. */
function ApproveAll({ rows, onClose }: { rows: readonly RouteRow[]; onClose(): void }) {
  const writes = useNodeWrites();
  const status = useStatus();
  const [busy, setBusy] = useState(false);
  const run = async (chosen: readonly RouteRow[]) => {
    setBusy(true);
    const failed: { row: RouteRow; error: unknown }[] = [];
    // One after the other: two routes of a node are two changes of the same list.
    for (const row of chosen) {
      await writes
        .switchRoute(row.node, row.route.prefixes, true)
        .catch((error: unknown) => void failed.push({ row, error }));
    }
    if (failed.length === 0) status.done(t.all.done(chosen.length));
    else
      status.failed(t.all.partly(chosen.length - failed.length, failed.length), failed[0]?.error, {
        label: t.all.retry(failed.length),
        run: () => void run(failed.map(({ row }) => row)),
      });
    onClose();
  };
  return (
    <Confirm
      danger={false}
      busy={busy}
      title={t.all.title(rows.length)}
      submit={t.all.submit(rows.length)}
      call={rows.length === 1 && rows[0] && callOf(rows[0], true)}
      onClose={onClose}
      onSubmit={() => void run(rows)}
    >
      <p>{t.all.body}</p>
      <ul className="max-h-60 overflow-y-auto rounded-md bg-chip px-3 py-2 text-12 text-ink">
        {rows.map((row) => (
          <li key={row.id} className="flex justify-between gap-4 py-0.5">
            <span className="font-mono">{labelOf(row)}</span>
            <span className="truncate">{nameOf(row)}</span>
          </li>
        ))}
      </ul>
    </Confirm>
  );
}
