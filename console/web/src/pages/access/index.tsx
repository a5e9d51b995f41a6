/** Who reaches what: a question, a matrix, a drawing and a table of one answer of the server. */
import { Link } from "@tanstack/react-router";
import { Network } from "lucide-react";
import { useCallback, useMemo } from "react";
import { type AccessRow, type Change, changeOf, rowId } from "@/access";
import type { AccessMap, AccessPrincipal } from "@/api";
import { matches, useFilter } from "@/filter";
import { useSearchState } from "@/router/search";
import { text } from "@/text";
import { accessMap } from "@/text/access";
import {
  Banner,
  Button,
  columnsShown,
  Delayed,
  Empty,
  ErrorState,
  ExportMenu,
  FilterChips,
  FilterLine,
  linkButton,
  PageHead,
  Select,
  Skeleton,
  Tabs,
  useMedia,
  usePageTitle,
  ViewMenu,
} from "@/ui";
import { Answer, AskForm } from "./Ask";
import { accessColumns, rowFilter } from "./columns";
import { MapFilterMenu } from "./FilterMenu";
import { Flow } from "./Flow";
import { ruleId } from "./flow";
import { MapTable } from "./MapTable";
import { Matrix } from "./Matrix";
import { NodeChooser } from "./NodeChooser";
import { CellPanel, RulePanel } from "./panels";
import { type Detail, useDraftText, useMap, useNodeRows } from "./useMap";

const t = accessMap;
const usual = {
  view: "matrix",
  by: "groups",
  from: "",
  to: "",
  port: "",
  proto: "",
  cell: "",
  rule: "",
  focus: "",
  node: "",
  q: "",
  sort: "",
  cols: "",
  draft: "",
};
type Search = typeof usual;
type SetSearch = (change: Partial<Search>, how?: "replace" | "push") => void;
type View = keyof typeof t.views;
const panelId = "access-map";
const filterFields = Object.keys(rowFilter.fields);

export function AccessPage() {
  const [search, setSearch] = useSearchState(usual);
  const phone = useMedia("(max-width: 767px)");
  const view: View = phone ? "table" : search.view in t.views ? (search.view as View) : "matrix";
  // A drawing of all nodes could not be read: it has one node at a time instead.
  const choices = Object.entries(t.byChoices).filter(([value]) => view !== "flow" || value !== "nodes");
  const by = (choices.some(([value]) => value === search.by) ? search.by : "groups") as Detail;
  const draftText = useDraftText();
  const hidden = search.draft === "off";
  const { map, rows, draft, broken, error, answered, retry } = useMap(by, hidden ? undefined : draftText);
  const ofNode = useNodeRows(view === "flow" ? search.node : "", draft);
  const drawn = (view === "flow" && search.node && ofNode) || rows;
  const { typed, setTyped, terms } = useFilter(
    search.q,
    useCallback((q: string) => setSearch({ q }), [setSearch]),
    filterFields,
  );
  const shown = useMemo(
    () => (terms.length === 0 ? rows : rows.filter((row) => matches(row, terms, rowFilter))),
    [rows, terms],
  );
  const columns = useMemo(() => accessColumns(draft !== undefined), [draft]);
  usePageTitle(text.access.title, t.views[view]);

  const onOpen = useCallback(
    (from: AccessPrincipal, to: AccessPrincipal) => setSearch({ cell: rowId(from, to), rule: "" }, "push"),
    [setSearch],
  );
  const filter = (
    <>
      <FilterLine label={t.table.filter} placeholder={t.table.placeholder} value={typed} onChange={setTyped} />
      <MapFilterMenu rows={rows} draft={draft !== undefined} value={typed} onChange={setTyped} />
    </>
  );
  const asked = { from: search.from, to: search.to, port: search.port, proto: search.proto };
  const ask = (next: Partial<typeof asked>) => setSearch({ port: "", proto: "", ...next }, "push");
  return (
    <div className="flex h-full min-w-0">
      <div className="flex min-w-0 flex-1 flex-col">
        <PageHead
          title={text.access.title}
          below={
            <div className="mt-2 flex min-w-0 items-center gap-x-4 @max-[960px]:flex-col @max-[960px]:items-stretch">
              <div className="min-w-0 flex-1 max-md:hidden">
                <Tabs
                  label={text.access.title}
                  tabs={(Object.keys(t.views) as View[]).map((value) => ({ value, label: t.views[value] }))}
                  value={view}
                  onChange={(value) => setSearch({ view: value })}
                  panel={panelId}
                />
              </div>
              <div className="min-w-0 py-1.5 max-md:pb-3">
                <AskForm asked={asked} onAsk={ask} principals={map?.to ?? none} />
              </div>
            </div>
          }
        >
          {view === "table" && (
            <>
              {!phone && filter}
              <span className="contents max-md:hidden">
                <ViewMenu columns={columns} chosen={search.cols} onChoose={(cols) => setSearch({ cols })} />
                <ExportMenu what="access" columns={columnsShown(columns, search.cols)} rows={shown} />
              </span>
            </>
          )}
          <Select
            aria-label={t.by}
            value={by}
            onChange={(e) => setSearch({ by: e.target.value, cell: "", rule: "", focus: "" })}
          >
            {choices.map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </Select>
        </PageHead>
        {draftText !== undefined && (
          <DraftBanner
            rows={rows}
            hidden={hidden}
            broken={broken}
            failed={error !== null}
            answered={answered}
            onToggle={() => setSearch({ draft: hidden ? "" : "off" })}
          />
        )}
        {asked.from && asked.to && <Answer asked={asked} draft={draft} onClose={() => ask({ from: "", to: "" })} />}
        {map && map.moreFrom + map.moreTo + map.moreCells > 0 && (
          <Banner tone="warn">{t.part(map.moreFrom, map.moreTo, map.moreCells)}</Banner>
        )}
        {phone && <div className="flex gap-2 border-b border-line bg-surface px-4 py-2">{filter}</div>}
        {view === "table" && <FilterChips terms={terms} value={typed} onChange={setTyped} />}
        <div
          id={panelId}
          role="tabpanel"
          aria-labelledby={`${panelId}-${view}`}
          className="flex min-h-0 flex-1 flex-col"
        >
          {error && !map ? (
            <ErrorState title={t.failed} error={error} onRetry={retry} />
          ) : !map ? (
            <Delayed>
              <Waiting />
            </Delayed>
          ) : rows.length === 0 ? (
            <Nothing />
          ) : (
            <Body
              map={map}
              rows={drawn}
              shown={shown}
              view={view}
              search={search}
              setSearch={setSearch}
              onOpen={onOpen}
              columns={columns}
              clear={() => setTyped("")}
            />
          )}
        </div>
      </div>
      <Panel search={search} setSearch={setSearch} rows={drawn} draft={draft} ask={ask} />
    </div>
  );
}

const none: readonly AccessPrincipal[] = [];

function Body({
  map,
  rows,
  shown,
  view,
  search,
  setSearch,
  onOpen,
  columns,
  clear,
}: {
  map: AccessMap;
  rows: readonly AccessRow[];
  shown: readonly AccessRow[];
  view: View;
  search: Search;
  setSearch: SetSearch;
  onOpen(from: AccessPrincipal, to: AccessPrincipal): void;
  columns: ReturnType<typeof accessColumns>;
  clear(): void;
}) {
  const openRow = useCallback((row: AccessRow) => onOpen(row.from, row.to), [onOpen]);
  if (view === "matrix") return <Matrix map={map} rows={rows} open={search.cell} onOpen={onOpen} />;
  if (view === "flow")
    return (
      <Flow
        rows={rows}
        chooser={<NodeChooser value={search.node} onChange={(node) => setSearch({ node, focus: "" }, "push")} />}
        chosen={search.node !== ""}
        focus={search.focus}
        onFocus={(focus) => setSearch(focus ? { focus } : { focus, node: "" }, "push")}
        openRule={search.rule}
        onOpenRule={(rule) => setSearch({ rule, cell: "" }, "push")}
      />
    );
  return (
    <MapTable
      rows={shown}
      columns={columns}
      search={search}
      onSort={(sort) => setSearch({ sort })}
      onOpen={openRow}
      onClear={clear}
      loading={false}
    />
  );
}

function Panel({
  search,
  setSearch,
  rows,
  draft,
  ask,
}: {
  search: Search;
  setSearch: SetSearch;
  rows: readonly AccessRow[];
  draft: string | undefined;
  ask(asked: { from: string; to: string }): void;
}) {
  if (search.cell) {
    const [from = "", to = ""] = search.cell.split(">");
    return (
      <CellPanel
        key={search.cell}
        from={from}
        to={to}
        row={rows.find((row) => row.id === search.cell)}
        draft={draft}
        onAsk={(a, b) => {
          setSearch({ cell: "" });
          ask({ from: a, to: b });
        }}
        onRule={(rule) => setSearch({ cell: "", rule: ruleId(rule) }, "push")}
        onClose={() => setSearch({ cell: "" })}
      />
    );
  }
  const rule = search.rule && rows.flatMap((row) => row.rules).find((use) => ruleId(use.rule) === search.rule)?.rule;
  if (!rule) return null;
  return <RulePanel key={search.rule} rule={rule} rows={rows} draft={draft} onClose={() => setSearch({ rule: "" })} />;
}

/** Says what the draft does to the map, or that it is not part of it. */
function DraftBanner({
  rows,
  hidden,
  broken,
  failed,
  answered,
  onToggle,
}: {
  rows: readonly AccessRow[];
  hidden: boolean;
  broken: Error | undefined;
  failed: boolean;
  answered: boolean;
  onToggle(): void;
}) {
  const count = (change: Change) => rows.filter((row) => changeOf(row.cell) === change).length;
  const [gained, lost, changed] = [count("gained"), count("lost"), count("changed")];
  if (broken)
    return (
      <Banner
        tone="warn"
        action={
          <Link to="/policy" className={linkButton()}>
            {t.openPolicy}
          </Link>
        }
      >
        {t.draft.broken}: {broken.message}
      </Banner>
    );
  const effect = () => {
    if (failed) return t.draft.unknown;
    if (!answered) return t.draft.coming;
    return gained + lost + changed === 0 ? t.draft.same : t.draft.on(gained, lost, changed);
  };
  return (
    <Banner action={<Button onClick={onToggle}>{hidden ? t.draft.show : t.draft.hide}</Button>}>
      {hidden ? t.draft.off : effect()}
    </Banner>
  );
}

const Nothing = () => (
  <Empty
    icon={Network}
    title={t.emptyTitle}
    action={
      <Link to="/policy" className={linkButton()}>
        {t.openPolicy}
      </Link>
    }
  >
    {t.emptyBody}
  </Empty>
);

const Waiting = () => (
  <div className="flex-1 space-y-5 bg-surface p-6">
    {[0, 1, 2, 3, 4, 5].map((i) => (
      <div key={i} className="flex gap-4">
        <Skeleton className="w-40" />
        <Skeleton className="w-20" />
        <Skeleton className="w-20" />
        <Skeleton className="w-20" />
      </div>
    ))}
  </div>
);
