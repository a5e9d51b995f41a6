import { Link } from "@tanstack/react-router";
import { clsx } from "clsx";
import { Layers, ScrollText } from "lucide-react";
import { NodeMark, Owner, ownerWords } from "@/nodes";
import type { RouteState } from "@/nodes/routes";
import { byNetwork, type RouteRow, useTurnRoutes } from "@/routes";
import { compareText, printable, text } from "@/text";
import { words as t } from "@/text/routes";
import { Badge, type Column, Switch, Tip, type Tone, textColumn, useWrites } from "@/ui";
import { type AutoApprovers, approverOf } from "./facts";

export const tones: Record<RouteState, Tone> = {
  waiting: "warn",
  serving: "ok",
  standby: "plain",
  offline: "plain",
  unoffered: "plain",
};

/** The label of a route's switch. */
export const labelOf = (row: RouteRow) => (row.route.exit ? t.exit : row.prefix);

export function StateBadge({ state }: { state: RouteState }) {
  return (
    <Tip label={text.node.routes.states[state]}>
      <span>
        <Badge tone={tones[state]}>{t.states[state]}</Badge>
      </span>
    </Tip>
  );
}

/** A switch that approves or disables the route; hidden without permission. */
export function RouteSwitch({ row }: { row: RouteRow }) {
  const { offered, why } = useWrites("routes:write");
  const turn = useTurnRoutes();
  const on = row.route.state !== "waiting";
  if (!offered) return null;
  return (
    <Switch
      label={t.approve(labelOf(row), printable(row.node.givenName))}
      checked={on}
      why={why}
      onChange={(next) => turn(next, (other) => other.id === row.id)}
    />
  );
}

export const openRoute = (row: RouteRow) => ((before: object) => ({ ...before, route: row.id })) as never;

function Remarks({ row, by }: { row: RouteRow; by: AutoApprovers }) {
  const approver = approverOf(row, by);
  return (
    <span className="flex min-w-0 items-center gap-3 text-12">
      {row.overlaps.length > 0 && (
        <Tip label={t.overlaps(row.overlaps)}>
          <span className="flex min-w-0 items-center gap-1.5 text-warn">
            <Layers className="size-3.5 shrink-0" aria-hidden />
            <span className="truncate">{t.overlaps(row.overlaps)}</span>
          </span>
        </Tip>
      )}
      {approver && <AutoApproved row={row} approver={approver} />}
    </span>
  );
}

export function AutoApproved({ row, approver }: { row: RouteRow; approver: { prefix: string; by: string[] } }) {
  const who = approver.by.join(", ");
  const words = row.route.exit ? t.autoApprovedExit(who) : t.autoApproved(who, approver.prefix);
  return (
    <Tip label={words}>
      <span className="flex min-w-0 items-center gap-1.5 text-ink-2">
        <ScrollText className="size-3.5 shrink-0 text-ink-3" aria-hidden />
        <span className="truncate">{words}</span>
      </span>
    </Tip>
  );
}

interface RouteFacts {
  exits: boolean;
  by: AutoApprovers;
  /** Rows whose network is shown muted, because the first router of the network already shows it. */
  repeated: ReadonlySet<string>;
  /** Whether the person may use the switches at all. */
  switches: boolean;
  /** How many nodes may use each exit node, if known. */
  users: ReadonlyMap<string, number> | undefined;
}

/** How many nodes may use an exit node according to the policy. A pending one serves nobody yet. */
export const usersOf = (row: RouteRow, users: ReadonlyMap<string, number> | undefined) =>
  row.route.exit && row.route.state !== "waiting" ? users?.get(row.node.id) : undefined;

export function routeColumns({ exits, by, repeated, switches, users }: RouteFacts): Column<RouteRow>[] {
  const network: Column<RouteRow> = {
    id: "network",
    title: t.columns.network,
    fixed: true,
    width: 164,
    sort: byNetwork,
    csv: (row) => row.prefix,
    cell: (row) => (
      <Link
        to="/routes"
        search={openRoute(row)}
        className={clsx(
          "block truncate font-mono text-12 hover:underline",
          repeated.has(row.id) ? "text-ink-3" : "font-medium",
        )}
      >
        {row.prefix}
      </Link>
    ),
  };
  const all: Column<RouteRow>[] = [
    ...(exits ? [] : [network]),
    textColumn({
      id: "router",
      title: exits ? t.columns.node : t.columns.router,
      fixed: true,
      width: exits ? 260 : 148,
      value: (row) => row.node.givenName,
      cell: (row) => <Router row={row} exits={exits} />,
    }),
    {
      id: "approved",
      title: t.columns.approved,
      width: 84,
      sort: (a, b) => Number(a.route.state === "waiting") - Number(b.route.state === "waiting"),
      csv: (row) => (row.route.state === "waiting" ? "no" : "yes"),
      cell: (row) => (
        <span className="flex items-center">
          <RouteSwitch row={row} />
        </span>
      ),
    },
    {
      id: "state",
      title: t.columns.state,
      width: 104,
      sort: (a, b) => compareText(a.route.state, b.route.state),
      csv: (row) => t.states[row.route.state],
      cell: (row) => <StateBadge state={row.route.state} />,
    },
    ...(exits && users
      ? [
          {
            id: "users",
            title: t.columns.users,
            width: 128,
            yields: 1,
            sort: (a: RouteRow, b: RouteRow) => (usersOf(b, users) ?? -1) - (usersOf(a, users) ?? -1),
            csv: (row: RouteRow) => String(usersOf(row, users) ?? ""),
            cell: (row: RouteRow) => {
              const count = usersOf(row, users);
              return count !== undefined && <span className="tabular-nums">{t.users(count)}</span>;
            },
          },
        ]
      : []),
    textColumn({
      id: "owner",
      title: t.columns.owner,
      width: 188,
      yields: 2,
      value: (row) => ownerWords(row.node),
      cell: (row) => <Owner node={row.node} />,
    }),
    {
      id: "remarks",
      title: t.columns.note,
      yields: 3,
      csv: (row) => row.overlaps.join(" "),
      cell: (row) => <Remarks row={row} by={by} />,
    },
  ];
  return switches ? all : all.filter((column) => column.id !== "approved");
}

function Router({ row, exits }: { row: RouteRow; exits: boolean }) {
  const name = printable(row.node.givenName);
  return (
    <span className="flex min-w-0 items-center gap-2.5">
      <NodeMark node={row.node} />
      {exits ? (
        <Link to="/routes" search={openRoute(row)} className="truncate font-medium hover:underline">
          {name}
        </Link>
      ) : (
        <Link to="/nodes/$id" params={{ id: row.node.id }} className="truncate hover:underline">
          {name}
        </Link>
      )}
    </span>
  );
}
