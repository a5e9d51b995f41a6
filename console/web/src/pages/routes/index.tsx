/**
 * Networks behind nodes, and exit nodes: their routers, which routes are waiting for approval, and which are in use.
 */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Ban, Check, Route } from "lucide-react";
import { useCallback, useMemo } from "react";
import { accessQuery } from "@/access/query";
import { useCan, useNodes, usePolicy } from "@/api";
import { matches } from "@/filter";
import { ListPage, type Selection, tabsOf, useChosen, useListPage } from "@/list";
import { NodeMark, ownerWords } from "@/nodes";
import { byNetwork, isWaiting, RouteActionsProvider, type RouteRow, routeRows, useTurnRoutes } from "@/routes";
import { internet } from "@/routes/losers";
import { printable, text } from "@/text";
import { words as t } from "@/text/routes";
import {
  BulkBar,
  Button,
  Command,
  columnsShown,
  DataTable,
  Empty,
  ErrorState,
  ExportMenu,
  NoMatch,
  NotAllowed,
  SidePanel,
  usePageTitle,
  useWrites,
  WriteButton,
} from "@/ui";
import { labelOf, openRoute, RouteSwitch, routeColumns, StateBadge, usersOf } from "./columns";
import { RouteFilterMenu } from "./FilterMenu";
import { autoApprovers, exitUsers, repeatedIn, routeFilter, routeFilterFields, splitWaiting } from "./facts";
import { RoutePanel } from "./RoutePanel";

const usual = { tab: "subnets", q: "", sort: "", cols: "", route: "" };
type Tab = keyof typeof t.tabs;

const rowName = (row: RouteRow) => `${labelOf(row)} ${printable(row.node.givenName)}`;
const none: ReadonlySet<string> = new Set();

/** Pending routes first, with all routers of the same network. */
function group(rows: readonly RouteRow[]) {
  const { waiting, rest } = splitWaiting(rows);
  const pending = waiting.filter(isWaiting).length;
  const named =
    pending === waiting.length
      ? { title: t.groups.waiting }
      : { title: t.groups.networks, note: t.groups.pending(pending) };
  return [
    { id: "waiting", ...named, rows: waiting },
    { id: "rest", title: waiting.length > 0 ? t.groups.rest : "", rows: rest },
  ];
}

export function RoutesPage() {
  const { data, error, refetch } = useNodes();
  const can = useCan();
  const rows = useMemo(() => routeRows(data?.items ?? []), [data]);
  if (!can("nodes:read") || !can("routes:read"))
    return <NotAllowed scope={can("nodes:read") ? "routes:read" : "nodes:read"} />;
  if (error && !data) return <ErrorState title={text.routes.title} error={error} onRetry={() => void refetch()} />;
  return (
    <RouteActionsProvider>
      <RoutesList all={rows} loading={!data} />
    </RouteActionsProvider>
  );
}

function RoutesList({ all, loading }: { all: readonly RouteRow[]; loading: boolean }) {
  const list = useListPage({ id: "routes-list", usual, tabs: t.tabs, fields: routeFilterFields });
  const { tab, terms, search, setSearch } = list;
  const exits = tab === "exits";
  const switches = useCan()("routes:write");
  const { data: policy } = usePolicy();
  const by = useMemo(() => autoApprovers(policy?.policy?.policy ?? ""), [policy]);

  const here = useMemo(() => all.filter((row) => row.route.exit === exits), [all, exits]);
  const found = useMemo(() => all.filter((row) => matches(row, terms, routeFilter)), [all, terms]);
  const rows = useMemo(() => found.filter((row) => row.route.exit === exits), [found, exits]);
  const repeated = useMemo(() => (search.sort ? none : repeatedIn(rows)), [rows, search.sort]);
  const users = useExitUsers(all, exits);
  const columns = useMemo(
    () => routeColumns({ exits, by, repeated, switches, users }),
    [exits, by, repeated, switches, users],
  );
  const open = search.route ? all.find((row) => row.id === search.route) : undefined;
  const onOpen = useCallback((row: RouteRow) => setSearch({ route: row.id }, "push"), [setSearch]);
  usePageTitle(text.routes.title, !loading && text.table.shown(rows.length));

  return (
    <ListPage
      list={list}
      title={text.routes.title}
      tabs={routeTabs(found)}
      onTab={(next) => setSearch({ tab: next, sort: "", cols: "" })}
      columns={columns}
      filter={{ filterLabel: t.filterLabel, filterPlaceholder: t.filterPlaceholder[tab] }}
      found={rows.length}
      filterMenu={<RouteFilterMenu rows={here} value={list.typed} onChange={list.setTyped} />}
      actions={
        <>
          <ExportMenu what={tab} columns={columnsShown(columns, search.cols)} rows={rows} />
          <ApproveAllButton rows={here.filter(isWaiting)} />
        </>
      }
      bulk={<Bulk list={list} all={here} rows={rows} />}
      aside={
        open && (
          <SidePanel
            title={open.route.exit ? printable(open.node.givenName) : <span className="font-mono">{open.prefix}</span>}
            onClose={() => setSearch({ route: "" })}
          >
            <RoutePanel row={open} rows={all} by={by} users={usersOf(open, users)} />
          </SidePanel>
        )
      }
    >
      <DataTable
        {...list.table}
        label={t.list[tab]}
        columns={columns}
        rows={rows}
        loading={loading}
        empty={<Nothing tab={tab} filtered={terms.length > 0} onClear={() => list.setTyped("")} />}
        rowName={rowName}
        usual={byNetwork}
        group={terms.length === 0 ? group : undefined}
        onSelect={switches ? list.setSelected : undefined}
        onOpen={onOpen}
        openId={open?.id}
        phone={(row) => <PhoneRow row={row} />}
      />
    </ListPage>
  );
}

/** How many nodes may use each exit node, requested only where exit nodes are shown. */
function useExitUsers(all: readonly RouteRow[], shown: boolean): ReadonlyMap<string, number> | undefined {
  const exits = useMemo(() => all.filter((row) => row.route.exit).map((row) => row.node), [all]);
  const { data } = useQuery({
    ...accessQuery({ to: [internet], by: "nodes" }),
    enabled: useCan()("policy:read") && shown && exits.length > 0,
  });
  return useMemo(() => data && exitUsers(data, exits), [data, exits]);
}

/** The kinds of routes, each with the number that wait for approval. */
const routeTabs = (all: readonly RouteRow[]) =>
  tabsOf(t.tabs, (tab) => {
    const waiting = all.filter((row) => row.route.exit === (tab === "exits") && isWaiting(row)).length;
    return { count: waiting || undefined, tone: "warn" };
  });

function ApproveAllButton({ rows }: { rows: readonly RouteRow[] }) {
  const turn = useTurnRoutes();
  if (rows.length === 0) return null;
  const ids = new Set(rows.map((row) => row.id));
  return (
    <WriteButton right="routes:write" look="primary" icon={Check} onClick={() => turn(true, (row) => ids.has(row.id))}>
      {t.approveAll(rows.length)}
    </WriteButton>
  );
}

/** Bulk actions on the selected rows of a tab. */
function Bulk({ list, all, rows }: { list: Selection; all: readonly RouteRow[]; rows: readonly RouteRow[] }) {
  const turn = useTurnRoutes();
  const { offered, why } = useWrites("routes:write");
  const { chosen, bar } = useChosen(list, all, rows);
  const act = (on: boolean) => () => turn(on, (row) => chosen.some(({ id }) => id === row.id));
  if (!offered) return null;
  return (
    <BulkBar label={text.routes.title} {...bar}>
      {chosen.some(isWaiting) && (
        <Button look="ghost" icon={Check} why={why} onClick={act(true)}>
          {t.bulk.approve}
        </Button>
      )}
      {!chosen.every(isWaiting) && (
        <Button look="ghost-danger" icon={Ban} why={why} onClick={act(false)}>
          {t.bulk.disable}
        </Button>
      )}
    </BulkBar>
  );
}

function Nothing({ tab, filtered, onClear }: { tab: Tab; filtered: boolean; onClear(): void }) {
  if (filtered) return <NoMatch onClear={onClear} />;
  const exits = tab === "exits";
  return (
    <Empty icon={Route} title={exits ? t.emptyExitsTitle : t.emptySubnetsTitle}>
      <div className="space-y-3">
        <p>{exits ? t.emptyExitsBody : t.emptySubnetsBody}</p>
        <Command value={exits ? t.emptyExitsCommand : t.emptySubnetsCommand} what={t.command} />
      </div>
    </Empty>
  );
}

function PhoneRow({ row }: { row: RouteRow }) {
  const name = printable(row.node.givenName);
  return (
    <div className="flex w-full min-w-0 items-center gap-3">
      <NodeMark node={row.node} />
      <div className="min-w-0 flex-1">
        <Link
          to="/routes"
          search={openRoute(row)}
          className={
            row.route.exit ? "block truncate text-14 font-medium" : "block truncate font-mono text-13 font-medium"
          }
        >
          {row.route.exit ? name : row.prefix}
        </Link>
        <div className="truncate text-12 text-ink-2">{row.route.exit ? printable(ownerWords(row.node)) : name}</div>
      </div>
      <StateBadge state={row.route.state} />
      <RouteSwitch row={row} />
    </div>
  );
}
