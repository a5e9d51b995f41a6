/** Who can reach what: a question form, and a matrix, a drawing and a table of the server's access map. */
import { type ReactNode, useCallback, useMemo } from "react";
import { rowId } from "@/access";
import { type AccessMap, type AccessPrincipal, useNodes, useUsers } from "@/api";
import { matches, useFilter } from "@/filter";
import { useSearchState } from "@/router/search";
import { text } from "@/text";
import { accessMap } from "@/text/access";
import {
  Banner,
  columnsShown,
  Delayed,
  ErrorState,
  ExportMenu,
  FilterLine,
  PageHead,
  Select,
  Tabs,
  useMedia,
  usePageTitle,
  ViewMenu,
} from "@/ui";
import { Answer, AskForm, useAskProblem } from "./Ask";
import { Body, Nothing, Waiting } from "./Body";
import { accessColumns, rowFilter } from "./columns";
import { DraftBanner } from "./DraftBanner";
import { MapFilterMenu } from "./FilterMenu";
import { askable, type Suggestion } from "./names";
import { OpenPanel } from "./OpenPanel";
import { type SetSearch, usual, type View } from "./search";
import { type Detail, useDraftText, useMap, useNodeRows } from "./useMap";

const t = accessMap;
const panelId = "access-map";
const filterFields = Object.keys(rowFilter.fields);

export function AccessPage() {
  const [search, setSearch] = useSearchState(usual);
  const phone = useMedia("(max-width: 767px)");
  const view: View = phone ? "table" : search.view in t.views ? (search.view as View) : "matrix";
  // A drawing of all nodes would be unreadable, so it shows one node at a time.
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
  const names = useAskable(map);
  const problem = useAskProblem(asked, draft, names);
  return (
    <div className="flex h-full min-w-0">
      <div className="flex min-w-0 flex-1 flex-col">
        <Head by={by} choices={choices} setSearch={setSearch}>
          {view === "table" && (
            <>
              {!phone && filter}
              <span className="contents max-md:hidden">
                <ViewMenu columns={columns} chosen={search.cols} onChoose={(cols) => setSearch({ cols })} />
                <ExportMenu what="access" columns={columnsShown(columns, search.cols)} rows={shown} />
              </span>
            </>
          )}
        </Head>
        <div className="relative z-30 shrink-0 border-b border-line bg-surface px-6 py-4 max-md:px-4 max-md:py-3">
          <AskForm asked={asked} onAsk={ask} all={names} problem={problem} />
        </div>
        {asked.from && asked.to && <Answer asked={asked} draft={draft} onClose={() => ask({ from: "", to: "" })} />}
        <Views view={view} setSearch={setSearch} />
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
        {map && map.moreFrom + map.moreTo + map.moreCells > 0 && (
          <Banner tone="warn">{t.part(map.moreFrom, map.moreTo, map.moreCells)}</Banner>
        )}
        {phone && <div className="flex gap-2 border-b border-line bg-surface px-4 py-2">{filter}</div>}
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
              byNodes={by === "nodes"}
              draft={draft !== undefined}
            />
          )}
        </div>
      </div>
      <OpenPanel search={search} setSearch={setSearch} rows={drawn} draft={draft} ask={ask} />
    </div>
  );
}

/** Everything that can be named in a question. */
function useAskable(map: AccessMap | undefined): Suggestion[] {
  const nodes = useNodes().data?.items;
  const users = useUsers().data?.items;
  return useMemo(() => askable(map?.to ?? [], nodes ?? [], users ?? []), [map, nodes, users]);
}

/** The title with the level of detail. */
function Head({
  by,
  choices,
  setSearch,
  children,
}: {
  by: Detail;
  choices: readonly (readonly [value: string, label: string])[];
  setSearch: SetSearch;
  children: ReactNode;
}) {
  return (
    <PageHead title={text.access.title} below={<div className="h-3" />}>
      {children}
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
  );
}

const Views = ({ view, setSearch }: { view: View; setSearch: SetSearch }) => (
  <div className="shrink-0 border-b border-line bg-canvas px-6 max-md:hidden">
    <Tabs
      label={text.access.title}
      tabs={(Object.keys(t.views) as View[]).map((value) => ({ value, label: t.views[value] }))}
      value={view}
      onChange={(value) => setSearch({ view: value })}
      panel={panelId}
    />
  </div>
);
