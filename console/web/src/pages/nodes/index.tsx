/** The list of nodes. Other lists of the console follow its design. */
import { Link, useNavigate } from "@tanstack/react-router";
import { Plus, Server, Trash2 } from "lucide-react";
import { lazy, Suspense, useCallback, useMemo } from "react";
import { type Node, useCan, useHosts, useNodes, usePresence } from "@/api";
import { matches, type Term } from "@/filter";
import { useOwnedTags } from "@/keys/policyTags";
import { ListPage, tabsOf, useCreate, useListPage } from "@/list";
import {
  type Around,
  asksHosts,
  byName,
  NodeActionsProvider,
  NodeMenu,
  newestVersion,
  nodeFilter,
  nodeFilterFields,
  staleAge,
  stateOf,
  useNodeActions,
  waitingRoutes,
} from "@/nodes";
import { RouteActionsProvider } from "@/routes";
import { printable, text } from "@/text";
import {
  columnsShown,
  DataTable,
  Empty,
  ExportMenu,
  linkButton,
  NoMatch,
  sortRows,
  type Tone,
  useNow,
  useShown,
  useWrites,
  WriteButton,
} from "@/ui";
import { Bulk } from "./Bulk";
import { exported, hostColumns, nodeColumns } from "./columns";
import { NodeFilterMenu } from "./FilterMenu";
import { attentionGroups } from "./groups";
import { PhoneRow } from "./PhoneRow";

const NodePanel = lazy(() => import("./NodePanel"));

const t = text.nodes;
const usual = { tab: "all", q: "", sort: "", cols: "", node: "", view: "summary" };

type Tab = keyof typeof t.tabs;
const inTab: Record<Tab, (node: Node) => boolean> = {
  all: () => true,
  online: (node) => stateOf(node) === "online",
  offline: (node) => stateOf(node) === "offline",
  expired: (node) => node.expired,
  waiting: (node) => node.needsApproval || waitingRoutes(node).length > 0,
};

const tones: Partial<Record<Tab, Tone>> = { expired: "bad", waiting: "warn" };
const nodeTabs = (nodes: readonly Node[]) =>
  tabsOf(t.tabs, (tab) => ({ count: nodes.filter(inTab[tab]).length, tone: tones[tab] }));

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
  const query = useNodes();
  const around = useAround();
  const { now } = around;
  const list = useListPage({ id: "nodes-list", usual, tabs: t.tabs, fields: nodeFilterFields });
  const { tab, terms, filtered, showAll, search, setSearch } = list;
  const nodes = query.data?.items ?? noNodes;

  const newest = useMemo(() => newestVersion(nodes), [nodes]);
  const onOpen = useCallback((node: Node) => setSearch({ node: node.id }, "push"), [setSearch]);
  const chosen = search.cols.split(",");
  const { data: hosts } = useHosts(asksHosts(terms) || hostColumns.some((id) => chosen.includes(id)));
  const columns = useMemo(() => nodeColumns({ hosts, around, newest, onOpen }), [hosts, around, newest, onOpen]);
  // Sort before filtering: comparing thousands of names at every keystroke takes too long.
  const sorted = useMemo(() => sortRows(nodes, search.sort, columns, byName), [nodes, search.sort, columns]);
  const found = useMemo(() => {
    const by = nodeFilter(now, hosts);
    return terms.length === 0 ? sorted : sorted.filter((node) => matches(node, terms, by));
  }, [sorted, terms, now, hosts]);
  const rows = useMemo(() => (tab === "all" ? found : found.filter(inTab[tab])), [found, tab]);
  const group = useCallback((rows: readonly Node[]) => attentionGroups(rows, around), [around]);
  const files = useMemo(() => exported(columnsShown(columns, search.cols)), [columns, search.cols]);
  const tabs = useMemo(() => nodeTabs(found), [found]);

  useShown(t.title, query.data && rows.length, terms);
  const { keys, start } = useNodeKeys();
  const phoneRow = useCallback(
    (node: Node) => <PhoneRow node={node} around={around} onOpen={onOpen} />,
    [around, onOpen],
  );
  const empty = useMemo(() => (filtered ? <NoMatch onClear={showAll} /> : <NoNodes />), [filtered, showAll]);

  return (
    <ListPage
      list={list}
      title={t.title}
      tabs={tabs}
      columns={columns}
      filter={t}
      filterMenu={<NodeFilterMenu nodes={nodes} value={list.typed} onChange={list.setTyped} />}
      actions={
        <>
          <ExportMenu what="nodes" columns={files} rows={rows} />
          <AddLink />
        </>
      }
      found={rows.length}
      above={<StaleHelp terms={terms} rows={rows} onDelete={(nodes) => start({ name: "delete", nodes })} />}
      query={query}
      bulk={<Bulk list={list} nodes={sorted} rows={rows} files={files} start={start} />}
      aside={<Panel search={search} setSearch={setSearch} />}
    >
      <DataTable
        {...list.table}
        label={t.list}
        columns={columns}
        rows={rows}
        loading={!query.data || (asksHosts(terms) && !hosts)}
        empty={empty}
        rowName={rowName}
        usual={byName}
        group={filtered ? undefined : group}
        onSelect={list.setSelected}
        onOpen={onOpen}
        openId={search.node}
        menu={rowMenu}
        rowKeys={keys}
        phone={phoneRow}
      />
    </ListPage>
  );
}

const noNodes: readonly Node[] = [];

function useAround(): Around {
  const { data: presence } = usePresence();
  const owned = useOwnedTags();
  const now = useNow();
  return useMemo(() => ({ presence, owned, now }), [presence, owned, now]);
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
  const run = () => void navigate({ to: "/nodes/new" });
  useCreate(useMayAdd(), { id: "nodes.add", label: t.add, words: ["new", "create", "join"], run });
  return { keys, start };
}

/** The details of the node in the URL. */
function Panel({ search, setSearch }: { search: typeof usual; setSearch(change: Partial<typeof usual>): void }) {
  if (!search.node) return null;
  return (
    <Suspense>
      <NodePanel
        id={search.node}
        tab={search.view}
        onTab={(view) => setSearch({ view })}
        onClose={() => setSearch({ node: "", view: "" })}
      />
    </Suspense>
  );
}

/** Nodes that have not been seen for a long time are mostly devices that no longer exist. */
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
    <div className="flex shrink-0 justify-end border-b border-line bg-surface px-6 py-1 empty:hidden max-md:justify-start max-md:px-4">
      <WriteButton right="nodes:write" look="ghost-danger" icon={Trash2} onClick={() => onDelete(rows)}>
        {t.stale(rows.length, age)}
      </WriteButton>
    </div>
  );
}

/** A device joins with a key or by approval: without permission for either, the user cannot add one. */
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
