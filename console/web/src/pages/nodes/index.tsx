/** The list of nodes: the reference for every list of the console. */
import { Link, useNavigate } from "@tanstack/react-router";
import { Hourglass, Plus, Route, Server, Tag, Trash2 } from "lucide-react";
import { lazy, Suspense, useCallback, useMemo, useState } from "react";
import { type Node, useCan, useHosts, useNodes, usePresence } from "@/api";
import { matches, type Term, useFilter } from "@/filter";
import { useOwnedTags } from "@/keys/policyTags";
import {
  type Around,
  asksHosts,
  byName,
  ipv4Of,
  NodeActionsProvider,
  NodeMark,
  NodeMenu,
  newestVersion,
  nodeFilter,
  nodeFilterFields,
  ownerWords,
  staleAge,
  stateOf,
  useNodeActions,
  waitingRoutes,
} from "@/nodes";
import { oneOf, useSearchState } from "@/router/search";
import { RouteActionsProvider, useTurnRoutes } from "@/routes";
import { useActions } from "@/shell/actions";
import { printable, text } from "@/text";
import {
  Badge,
  BulkBar,
  Button,
  type Column,
  columnsShown,
  DataTable,
  Empty,
  ErrorState,
  ExportMenu,
  FilterChips,
  FilterLine,
  Flash,
  linkButton,
  NoMatch,
  PageHead,
  sortRows,
  Tabs,
  Time,
  useNow,
  useShortcuts,
  useShown,
  useWrites,
  ViewMenu,
  WriteButton,
} from "@/ui";
import { exported, hostColumns, NodeLink, nodeColumns } from "./columns";
import { NodeFilterMenu } from "./FilterMenu";
import { attentionGroups } from "./groups";

const NodePanel = lazy(() => import("./NodePanel"));

const t = text.nodes;
const usual = { tab: "all", q: "", sort: "", cols: "", node: "", view: "summary" };
const panelId = "nodes-list";

type Tab = keyof typeof t.tabs;
const inTab: Record<Tab, (node: Node) => boolean> = {
  all: () => true,
  online: (node) => stateOf(node) === "online",
  offline: (node) => stateOf(node) === "offline",
  expired: (node) => node.expired,
  waiting: (node) => waitingRoutes(node).length > 0,
};

const rowId = (node: Node) => node.id;
const rowName = (node: Node) => printable(node.givenName);
const rowMenu = (node: Node) => <NodeMenu node={node} />;

export function NodesPage() {
  return (
    <NodeActionsProvider>
      <RouteActionsProvider>
        <NodesList />
      </RouteActionsProvider>
    </NodeActionsProvider>
  );
}

function NodesList() {
  const { data, error, refetch } = useNodes();
  const { data: presence } = usePresence();
  const now = useNow();
  const [search, setSearch] = useSearchState(usual);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const tab = oneOf<Tab>(search.tab, inTab, "all");
  const nodes = data?.items ?? noNodes;

  const commit = useCallback((q: string) => setSearch({ q }), [setSearch]);
  const { typed, setTyped, query, terms } = useFilter(search.q, commit, nodeFilterFields);
  const newest = useMemo(() => newestVersion(nodes), [nodes]);
  const onOpen = useCallback((node: Node) => setSearch({ node: node.id }, "push"), [setSearch]);
  const chosen = search.cols.split(",");
  const { data: hosts } = useHosts(asksHosts(terms) || hostColumns.some((id) => chosen.includes(id)));
  const columns = useMemo(
    () => nodeColumns({ hosts, presence, newest, now, onOpen }),
    [hosts, presence, newest, now, onOpen],
  );
  // In order before they are filtered: to compare thousands of names at each letter takes longer than a letter may.
  const sorted = useMemo(() => sortRows(nodes, search.sort, columns, byName), [nodes, search.sort, columns]);
  const rows = useMemo(() => {
    const by = nodeFilter(now, hosts);
    return sorted.filter((node) => inTab[tab](node) && matches(node, terms, by));
  }, [sorted, tab, terms, now, hosts]);
  const { group, all } = useAttention(presence, now);
  const filtered = tab !== "all" || terms.length > 0;
  const files = useMemo(() => exported(columnsShown(columns, search.cols)), [columns, search.cols]);

  useShown(t.title, data && rows.length, terms);
  const { keys, start } = useNodeKeys();
  const onSort = useCallback((sort: string) => setSearch({ sort }), [setSearch]);
  const phoneRow = useCallback((node: Node) => <PhoneRow node={node} onOpen={onOpen} />, [onOpen]);
  const empty = useMemo(() => {
    const clear = () => {
      setTyped("");
      setSearch({ q: "", tab: "all" });
    };
    return filtered ? <NoMatch onClear={clear} /> : <NoNodes />;
  }, [filtered, setTyped, setSearch]);

  return (
    <div className="flex h-full min-w-0">
      <div className="relative flex min-w-0 flex-1 flex-col">
        <PageHead
          title={t.title}
          below={
            <Toolbar
              nodes={nodes}
              tab={tab}
              search={search}
              setSearch={setSearch}
              typed={typed}
              onType={setTyped}
              columns={columns}
            />
          }
        >
          <ExportMenu what="nodes" columns={files} rows={rows} />
          <AddLink />
        </PageHead>
        <FilterChips terms={terms} value={typed} onChange={setTyped}>
          <StaleHelp terms={terms} rows={rows} onDelete={(nodes) => start({ name: "delete", nodes })} />
        </FilterChips>
        <div
          id={panelId}
          role="tabpanel"
          aria-labelledby={`${panelId}-${tab}`}
          className="flex min-h-0 flex-1 flex-col"
        >
          {error && !data ? (
            <ErrorState title={t.title} error={error} onRetry={() => void refetch()} />
          ) : (
            <DataTable
              label={t.list}
              columns={columns}
              chosen={search.cols}
              rows={rows}
              loading={!data || (asksHosts(terms) && !hosts)}
              empty={empty}
              rowId={rowId}
              rowName={rowName}
              sort={search.sort}
              onSort={onSort}
              usual={byName}
              group={filtered ? undefined : group}
              asked={`${tab} ${query} ${all}`}
              selected={selected}
              onSelect={setSelected}
              onOpen={onOpen}
              openId={search.node}
              menu={rowMenu}
              rowKeys={keys}
              phone={phoneRow}
            />
          )}
        </div>
        <Bulk
          nodes={sorted}
          rows={rows}
          selected={selected}
          files={files}
          onClear={() => setSelected(new Set())}
          start={start}
        />
      </div>
      {search.node && (
        <Suspense>
          <NodePanel
            id={search.node}
            tab={search.view}
            onTab={(view) => setSearch({ view })}
            onClose={() => setSearch({ node: "", view: "" })}
          />
        </Suspense>
      )}
    </div>
  );
}

const noNodes: readonly Node[] = [];

function useAttention(presence: Around["presence"], now: number) {
  const [all, setAll] = useState(false);
  const owned = useOwnedTags();
  const group = useCallback(
    (rows: readonly Node[]) => attentionGroups(rows, { presence, owned, now }, all, () => setAll(true)),
    [presence, owned, now, all],
  );
  return { group, all };
}

function useNodeKeys() {
  const start = useNodeActions();
  const navigate = useNavigate();
  const writes = useWrites("nodes:write");
  const may = writes.offered && writes.now;
  const keys = useMemo(
    () =>
      may
        ? [
            { keys: "e", label: t.actions.rename, run: (node: Node) => start({ name: "rename", node }) },
            { keys: "t", label: t.actions.tags, run: (node: Node) => start({ name: "tags", node }) },
            { keys: "Delete", label: t.actions.delete, run: (node: Node) => start({ name: "delete", nodes: [node] }) },
          ]
        : [],
    [may, start],
  );
  const mayAdd = useMayAdd();
  const add = () => void navigate({ to: "/nodes/new" });
  useShortcuts(mayAdd ? [{ keys: "c", label: t.add, group: text.shell.groups.page, run: add }] : []);
  useActions(
    mayAdd
      ? [{ id: "nodes.add", title: t.add, icon: Plus, keys: "c", words: ["new", "create", "join"], run: add }]
      : [],
  );
  return { keys, start };
}

type SetSearch = (change: Partial<typeof usual>) => void;

function Toolbar({
  nodes,
  tab,
  search,
  setSearch,
  typed,
  onType,
  columns,
}: {
  nodes: readonly Node[];
  tab: Tab;
  search: typeof usual;
  setSearch: SetSearch;
  typed: string;
  onType(typed: string): void;
  columns: ReturnType<typeof nodeColumns>;
}) {
  const tabs = useMemo(
    () =>
      (Object.keys(t.tabs) as Tab[]).map((value) => ({
        value,
        label: t.tabs[value],
        count: nodes.filter(inTab[value]).length,
        tone: value === "expired" ? ("bad" as const) : value === "waiting" ? ("warn" as const) : undefined,
      })),
    [nodes],
  );
  return (
    <div className="mt-2 flex min-w-0 items-center gap-x-4 @max-[880px]:flex-col @max-[880px]:items-stretch">
      <div className="min-w-0 flex-1 @max-[880px]:w-full @max-[880px]:overflow-hidden">
        <Tabs label={t.title} tabs={tabs} value={tab} onChange={(value) => setSearch({ tab: value })} panel={panelId} />
      </div>
      <div className="flex items-center gap-2 @max-[880px]:py-2">
        <FilterLine label={t.filterLabel} placeholder={t.filterPlaceholder} value={typed} onChange={onType} />
        <NodeFilterMenu nodes={nodes} value={typed} onChange={onType} />
        <ViewMenu columns={columns} chosen={search.cols} onChoose={(cols) => setSearch({ cols })} />
      </div>
    </div>
  );
}

/** Nodes that were not seen for long are mostly devices that nobody has any more. */
function StaleHelp({
  terms,
  rows,
  onDelete,
}: {
  terms: readonly Term[];
  rows: readonly Node[];
  onDelete(nodes: readonly Node[]): void;
}) {
  const age = staleAge(terms);
  if (age === null || rows.length === 0) return null;
  return (
    <WriteButton
      right="nodes:write"
      look="ghost-danger"
      icon={Trash2}
      className="ml-auto h-6! text-12! max-md:ml-0"
      onClick={() => onDelete(rows)}
    >
      {t.stale(rows.length, age)}
    </WriteButton>
  );
}

/** A device joins with a key, or is let in by somebody: whoever may do neither cannot add one. */
function useMayAdd() {
  const can = useCan();
  return can("preauthkeys:write") || can("logins:write");
}

function AddLink() {
  if (!useMayAdd()) return null;
  return (
    <Link to="/nodes/new" className={linkButton("primary")}>
      <Plus className="size-4" aria-hidden /> {t.add}
    </Link>
  );
}

const NoNodes = () => (
  <Empty icon={Server} title={t.emptyTitle} action={<AddLink />}>
    {t.emptyBody}
  </Empty>
);

function PhoneRow({ node, onOpen }: { node: Node; onOpen(node: Node): void }) {
  const waiting = waitingRoutes(node).length;
  return (
    <div className="flex w-full min-w-0 items-center gap-3">
      <Flash value={node.online} className="grid shrink-0 place-items-center rounded-full">
        <NodeMark node={node} />
      </Flash>
      <div className="min-w-0 flex-1">
        <NodeLink node={node} onOpen={onOpen} className="block truncate text-14 font-medium" />
        <div className="flex gap-2 text-12 text-ink-2">
          <span className="font-mono">{ipv4Of(node)}</span>
          <span className="truncate">{printable(ownerWords(node))}</span>
        </div>
      </div>
      {waiting > 0 && <Badge tone="warn">{t.waiting(waiting)}</Badge>}
      <span className="text-12 text-ink-3">
        {node.expired ? (
          <span className="text-bad">{t.state.expired}</span>
        ) : node.online ? (
          text.common.now
        ) : (
          <Time at={node.lastSeen} focusable={false} />
        )}
      </span>
      <NodeMenu node={node} />
    </div>
  );
}

function Bulk({
  nodes,
  rows,
  selected,
  files,
  onClear,
  start,
}: {
  nodes: readonly Node[];
  rows: readonly Node[];
  selected: ReadonlySet<string>;
  files: readonly Column<Node>[];
  onClear(): void;
  start: ReturnType<typeof useNodeActions>;
}) {
  const { offered, why } = useWrites("nodes:write");
  const routes = useWrites("routes:write");
  const turn = useTurnRoutes();
  const chosen = useMemo(() => nodes.filter((node) => selected.has(node.id)), [nodes, selected]);
  const hidden = chosen.length - rows.filter((node) => selected.has(node.id)).length;
  const waiting = chosen.some((node) => waitingRoutes(node).length > 0);
  const act = (name: "addTags" | "expire" | "delete") => () => start({ name, nodes: chosen });
  return (
    <BulkBar label={t.title} selected={chosen.length} hidden={hidden} onClear={onClear}>
      {offered && (
        <>
          <Button look="ghost" icon={Tag} why={why} onClick={act("addTags")}>
            {t.bulk.tags}
          </Button>
          {routes.offered && waiting && (
            <Button look="ghost" icon={Route} why={why} onClick={() => turn(true, (row) => selected.has(row.node.id))}>
              {t.bulk.approve}
            </Button>
          )}
          <Button look="ghost" icon={Hourglass} why={why} onClick={act("expire")}>
            {t.bulk.expire}
          </Button>
        </>
      )}
      <ExportMenu what="nodes" columns={files} rows={chosen} selected />
      {offered && (
        <Button look="ghost-danger" icon={Trash2} why={why} onClick={act("delete")}>
          {t.bulk.delete}
        </Button>
      )}
    </BulkBar>
  );
}
