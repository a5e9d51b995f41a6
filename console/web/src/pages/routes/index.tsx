/** Networks behind nodes, and exit nodes: who leads there, who waits for approval, and who served. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Ban, Check, Route } from "lucide-react";
import { useCallback, useMemo, useState } from "react";
import { accessQuery } from "@/access/query";
import { useCan, useNodes, usePolicy } from "@/api";
import { matches, useFilter } from "@/filter";
import { NodeMark, ownerWords } from "@/nodes";
import { oneOf, useSearchState } from "@/router/search";
import { byNetwork, isWaiting, RouteActionsProvider, type RouteRow, routeRows, useTurnRoutes } from "@/routes";
import { internet } from "@/routes/losers";
import { printable, text } from "@/text";
import { words as t } from "@/text/routes";
import {
  BulkBar,
  Button,
  columnsShown,
  DataTable,
  Empty,
  ErrorState,
  ExportMenu,
  FilterChips,
  FilterLine,
  NoMatch,
  NotAllowed,
  PageHead,
  SidePanel,
  Tabs,
  usePageTitle,
  useWrites,
  ViewMenu,
  WriteButton,
} from "@/ui";
import { labelOf, openRoute, RouteSwitch, routeColumns, StateBadge, usersOf } from "./columns";
import { RouteFilterMenu } from "./FilterMenu";
import { autoApprovers, exitUsers, repeatedIn, routeFilter, routeFilterFields, splitWaiting } from "./facts";
import { RoutePanel } from "./RoutePanel";

const usual = { tab: "subnets", q: "", sort: "", cols: "", route: "" };
const panelId = "routes-list";
type Tab = keyof typeof t.tabs;

const rowId = (row: RouteRow) => row.id;
const rowName = (row: RouteRow) => `${labelOf(row)} ${printable(row.node.givenName)}`;
const none: ReadonlySet<string> = new Set();

/** What waits comes first, with all routers of the same network. */
function group(rows: readonly RouteRow[]) {
  const { waiting, rest } = splitWaiting(rows);
  return [
    { id: "waiting", title: t.groups.waiting, rows: waiting, total: waiting.filter(isWaiting).length },
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
  const [search, setSearch] = useSearchState(usual);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const tab = oneOf<Tab>(search.tab, t.tabs, "subnets");
  const exits = tab === "exits";
  const switches = useCan()("routes:write");
  const { data: policy } = usePolicy();
  const by = useMemo(() => autoApprovers(policy?.policy?.policy ?? ""), [policy]);

  const commit = useCallback((q: string) => setSearch({ q }), [setSearch]);
  const { typed, setTyped, query, terms } = useFilter(search.q, commit, routeFilterFields);
  const here = useMemo(() => all.filter((row) => row.route.exit === exits), [all, exits]);
  const rows = useMemo(() => here.filter((row) => matches(row, terms, routeFilter)), [here, terms]);
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
    <div className="flex h-full min-w-0">
      <div className="relative flex min-w-0 flex-1 flex-col">
        <PageHead
          title={text.routes.title}
          below={
            <div className="mt-2 flex min-w-0 items-center gap-x-4 @max-[880px]:flex-col @max-[880px]:items-stretch">
              <div className="min-w-0 flex-1">
                <RouteTabs all={all} tab={tab} onChange={(next) => setSearch({ tab: next, sort: "", cols: "" })} />
              </div>
              <div className="flex items-center gap-2 @max-[880px]:py-2">
                <FilterLine
                  label={t.filterLabel}
                  placeholder={t.filterPlaceholder[tab]}
                  value={typed}
                  onChange={setTyped}
                />
                <RouteFilterMenu rows={here} value={typed} onChange={setTyped} />
                <ViewMenu columns={columns} chosen={search.cols} onChoose={(cols) => setSearch({ cols })} />
              </div>
            </div>
          }
        >
          <ExportMenu what={tab} columns={columnsShown(columns, search.cols)} rows={rows} />
          <ApproveAllButton rows={here.filter(isWaiting)} />
        </PageHead>
        <FilterChips terms={terms} value={typed} onChange={setTyped} />
        <div
          id={panelId}
          role="tabpanel"
          aria-labelledby={`${panelId}-${tab}`}
          className="flex min-h-0 flex-1 flex-col"
        >
          <DataTable
            label={t.list[tab]}
            columns={columns}
            chosen={search.cols}
            rows={rows}
            loading={loading}
            empty={<Nothing tab={tab} filtered={terms.length > 0} onClear={() => setTyped("")} />}
            rowId={rowId}
            rowName={rowName}
            sort={search.sort}
            onSort={(sort) => setSearch({ sort })}
            usual={byNetwork}
            group={terms.length === 0 ? group : undefined}
            asked={`${tab} ${query}`}
            selected={selected}
            onSelect={switches ? setSelected : undefined}
            onOpen={onOpen}
            openId={open?.id}
            phone={(row) => <PhoneRow row={row} />}
          />
        </div>
        <Bulk all={here} rows={rows} selected={selected} onClear={() => setSelected(new Set())} />
      </div>
      {open && (
        <SidePanel
          title={open.route.exit ? printable(open.node.givenName) : <span className="font-mono">{open.prefix}</span>}
          onClose={() => setSearch({ route: "" })}
        >
          <RoutePanel row={open} rows={all} by={by} users={usersOf(open, users)} />
        </SidePanel>
      )}
    </div>
  );
}

/** How many nodes may use each exit node, asked for where exit nodes are shown. */
function useExitUsers(all: readonly RouteRow[], shown: boolean): ReadonlyMap<string, number> | undefined {
  const exits = useMemo(() => all.filter((row) => row.route.exit).map((row) => row.node), [all]);
  const { data } = useQuery({
    ...accessQuery({ to: [internet], by: "nodes" }),
    enabled: useCan()("policy:read") && shown && exits.length > 0,
  });
  return useMemo(() => data && exitUsers(data, exits), [data, exits]);
}

function RouteTabs({ all, tab, onChange }: { all: readonly RouteRow[]; tab: Tab; onChange(tab: Tab): void }) {
  const tabs = (Object.keys(t.tabs) as Tab[]).map((value) => {
    const own = all.filter((row) => row.route.exit === (value === "exits"));
    const waiting = own.filter(isWaiting).length;
    return {
      value,
      label: t.tabs[value],
      count: waiting || undefined,
      tone: waiting > 0 ? ("warn" as const) : undefined,
    };
  });
  return <Tabs label={text.routes.title} tabs={tabs} value={tab} onChange={onChange} panel={panelId} />;
}

function ApproveAllButton({ rows }: { rows: readonly RouteRow[] }) {
  const turn = useTurnRoutes();
  if (rows.length === 0) return null;
  const ids = new Set(rows.map(rowId));
  return (
    <WriteButton right="routes:write" look="primary" icon={Check} onClick={() => turn(true, (row) => ids.has(row.id))}>
      {t.approveAll(rows.length)}
    </WriteButton>
  );
}

/** What can be done with the chosen rows of a tab. */
function Bulk({
  all,
  rows,
  selected,
  onClear,
}: {
  all: readonly RouteRow[];
  rows: readonly RouteRow[];
  selected: ReadonlySet<string>;
  onClear(): void;
}) {
  const turn = useTurnRoutes();
  const { offered, why } = useWrites("routes:write");
  const chosen = useMemo(() => all.filter((row) => selected.has(row.id)), [all, selected]);
  const hidden = chosen.length - rows.filter((row) => selected.has(row.id)).length;
  const act = (on: boolean) => () => turn(on, (row) => chosen.some(({ id }) => id === row.id));
  if (!offered) return null;
  return (
    <BulkBar label={text.routes.title} selected={chosen.length} hidden={hidden} onClear={onClear}>
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
  return (
    <Empty icon={Route} title={tab === "exits" ? t.emptyExitsTitle : t.emptySubnetsTitle}>
      {tab === "exits" ? t.emptyExitsBody : t.emptySubnetsBody}
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
