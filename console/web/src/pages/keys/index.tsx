/** Pre-auth keys, with which nodes join without anybody signing in. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Hourglass, KeyRound, Plus, Trash2 } from "lucide-react";
import { type ReactNode, useCallback, useMemo, useState } from "react";
import { type PreAuthKey, preAuthKeysQuery, useCan, useNodes } from "@/api";
import { matches, useFilter } from "@/filter";
import {
  KeyActionsProvider,
  KeyKind,
  KeyMenu,
  KeyStateMark,
  keyFilter,
  keyFilterFields,
  keyName,
  keyOwnerWords,
  keyState,
  nodesByKey,
  useKeyActions,
  usePolicyTags,
} from "@/keys";
import { oneOf, useBegun, useSearchState } from "@/router/search";
import { useActions } from "@/shell/actions";
import { printable, text } from "@/text";
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
  Time,
  useNow,
  useShortcuts,
  useShown,
  useWrites,
  ViewMenu,
  WriteButton,
} from "@/ui";
import { keyColumns } from "./columns";
import { useCreators } from "./creators";
import { KeyFilterMenu } from "./FilterMenu";
import { KeySummary } from "./KeySummary";

const t = text.keys;
const usual = { tab: "usable", q: "", sort: "", cols: "", key: "" };
const panelId = "keys-list";
type Tab = keyof typeof t.tabs;

const rowId = (key: PreAuthKey) => key.id;
const rowMenu = (key: PreAuthKey) => <KeyMenu of={key} />;
const newestFirst = (a: PreAuthKey, b: PreAuthKey) => Date.parse(b.createdAt) - Date.parse(a.createdAt);
const none: readonly PreAuthKey[] = [];

export function KeysPage() {
  return (
    <KeyActionsProvider>
      <KeysList />
    </KeyActionsProvider>
  );
}

function KeysList() {
  const can = useCan();
  const { data, error, refetch } = useQuery({ ...preAuthKeysQuery, enabled: can("preauthkeys:read") });
  const { data: nodes } = useNodes();
  const powerful = usePolicyTags()?.powerful;
  const creators = useCreators(data?.items);
  const now = useNow();
  const [search, setSearch] = useSearchState(usual);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const writes = can("preauthkeys:write");
  const tab = oneOf<Tab>(search.tab, t.tabs, "usable");
  const all = data?.items ?? none;

  const commit = useCallback((q: string) => setSearch({ q }), [setSearch]);
  const { typed, setTyped, query, terms } = useFilter(search.q, commit, keyFilterFields);
  const rows = useMemo(() => {
    const by = keyFilter(now);
    return all.filter((key) => (tab === "all" || keyState(key, now) === tab) && matches(key, terms, by));
  }, [all, tab, terms, now]);
  const columns = useMemo(
    () => keyColumns({ nodes: nodesByKey(nodes?.items ?? []), creators, powerful: powerful ?? [], now }),
    [nodes, creators, powerful, now],
  );
  const open = search.key ? all.find((key) => key.id === search.key) : undefined;

  useShown(t.title, data && rows.length, terms);
  const onOpen = useCallback((key: PreAuthKey) => setSearch({ key: key.id }, "push"), [setSearch]);
  const rowKeys = useKeyKeys();
  const clear = () => {
    setTyped("");
    setSearch({ q: "", tab: "all" });
  };

  return (
    <div className="flex h-full min-w-0">
      <div className="relative flex min-w-0 flex-1 flex-col">
        <PageHead
          title={t.title}
          below={
            <Toolbar
              all={all}
              now={now}
              tab={tab}
              onTab={(next) => setSearch({ tab: next })}
              typed={typed}
              onType={setTyped}
            >
              <ViewMenu columns={columns} chosen={search.cols} onChoose={(cols) => setSearch({ cols })} />
            </Toolbar>
          }
        >
          <ExportMenu what="keys" columns={columnsShown(columns, search.cols)} rows={rows} />
          <CreateButton />
        </PageHead>
        <FilterChips terms={terms} value={typed} onChange={setTyped} />
        <div
          id={panelId}
          role="tabpanel"
          aria-labelledby={`${panelId}-${tab}`}
          className="flex min-h-0 flex-1 flex-col"
        >
          {!can("preauthkeys:read") ? (
            <NotAllowed scope="preauthkeys:read" />
          ) : error && !data ? (
            <ErrorState title={t.title} error={error} onRetry={() => void refetch()} />
          ) : (
            <DataTable
              label={t.list}
              columns={columns}
              chosen={search.cols}
              rows={rows}
              loading={!data}
              empty={<Nothing any={all.length > 0} filtered={terms.length > 0 || tab !== "usable"} onClear={clear} />}
              rowId={rowId}
              rowName={keyName}
              sort={search.sort}
              onSort={(sort) => setSearch({ sort })}
              usual={newestFirst}
              asked={`${tab} ${query}`}
              selected={selected}
              onSelect={writes ? setSelected : undefined}
              onOpen={onOpen}
              openId={open?.id}
              menu={rowMenu}
              rowKeys={rowKeys}
              phone={(key) => <PhoneRow of={key} now={now} />}
            />
          )}
        </div>
        <Bulk all={all} rows={rows} selected={selected} onClear={() => setSelected(new Set())} now={now} />
      </div>
      {open && (
        <SidePanel
          title={<span className="font-mono">{keyName(open)}</span>}
          onClose={() => setSearch({ key: "" })}
          actions={<KeyMenu of={open} />}
        >
          <KeySummary of={open} creator={creators?.get(open.id)} />
        </SidePanel>
      )}
    </div>
  );
}

function useKeyKeys() {
  const start = useKeyActions();
  const { offered, now } = useWrites("preauthkeys:write");
  const may = offered && now;
  const create = () => start({ name: "create" });
  useBegun("create", () => may && create());
  useShortcuts(may ? [{ keys: "c", label: t.create.open, group: text.shell.groups.page, run: create }] : []);
  useActions(
    may ? [{ id: "keys.create", title: t.create.title, icon: Plus, keys: "c", words: ["new"], run: create }] : [],
  );
  return useMemo(
    () =>
      may
        ? [
            {
              keys: "Delete",
              label: t.actions.delete,
              run: (key: PreAuthKey) => start({ name: "delete", keys: [key] }),
            },
          ]
        : [],
    [may, start],
  );
}

function Toolbar({
  all,
  now,
  tab,
  onTab,
  typed,
  onType,
  children,
}: {
  all: readonly PreAuthKey[];
  now: number;
  tab: Tab;
  onTab(tab: Tab): void;
  typed: string;
  onType(typed: string): void;
  children: ReactNode;
}) {
  const tabs = useMemo(
    () =>
      (Object.keys(t.tabs) as Tab[]).map((value) => ({
        value,
        label: t.tabs[value],
        count: value === "all" ? all.length : all.filter((key) => keyState(key, now) === value).length,
      })),
    [all, now],
  );
  return (
    <div className="mt-2 flex min-w-0 items-center gap-x-4 @max-[880px]:flex-col @max-[880px]:items-stretch">
      <div className="min-w-0 flex-1 @max-[880px]:w-full @max-[880px]:overflow-hidden">
        <Tabs label={t.title} tabs={tabs} value={tab} onChange={onTab} panel={panelId} />
      </div>
      <div className="flex items-center gap-2 @max-[880px]:py-2">
        <FilterLine label={t.filterLabel} placeholder={t.filterPlaceholder} value={typed} onChange={onType} />
        <KeyFilterMenu keys={all} value={typed} onChange={onType} />
        {children}
      </div>
    </div>
  );
}

function CreateButton() {
  const start = useKeyActions();
  return (
    <WriteButton right="preauthkeys:write" look="primary" icon={Plus} onClick={() => start({ name: "create" })}>
      {t.create.open}
    </WriteButton>
  );
}

function Nothing({ any, filtered, onClear }: { any: boolean; filtered: boolean; onClear(): void }) {
  if (!any)
    return (
      <Empty icon={KeyRound} title={t.emptyTitle} action={<CreateButton />}>
        {t.emptyBody}
      </Empty>
    );
  if (!filtered)
    return (
      <Empty icon={KeyRound} title={t.noUsableTitle} action={<CreateButton />}>
        {t.noUsableBody}
      </Empty>
    );
  return <NoMatch onClear={onClear} />;
}

function PhoneRow({ of: key, now }: { of: PreAuthKey; now: number }) {
  return (
    <div className="flex w-full min-w-0 items-center gap-3">
      <KeyStateMark of={key} now={now} words={false} />
      <div className="min-w-0 flex-1">
        <Link
          to="/keys"
          search={((before: object) => ({ ...before, key: key.id })) as never}
          className="block truncate font-mono text-13 font-medium"
        >
          {keyName(key)}
        </Link>
        <div className="truncate text-12 text-ink-2">{printable(keyOwnerWords(key))}</div>
      </div>
      <div className="flex shrink-0 flex-col items-end gap-0.5 text-12 text-ink-2">
        <KeyKind of={key} now={now} />
        <Time at={key.expiration} focusable={false} format={keyState(key, now) === "expired" ? t.expired : undefined} />
      </div>
      <KeyMenu of={key} />
    </div>
  );
}

function Bulk({
  all,
  rows,
  selected,
  onClear,
  now,
}: {
  all: readonly PreAuthKey[];
  rows: readonly PreAuthKey[];
  selected: ReadonlySet<string>;
  onClear(): void;
  now: number;
}) {
  const start = useKeyActions();
  const { offered, why } = useWrites("preauthkeys:write");
  const chosen = useMemo(() => all.filter((key) => selected.has(key.id)), [all, selected]);
  const usable = chosen.filter((key) => keyState(key, now) === "usable");
  const hidden = chosen.length - rows.filter((key) => selected.has(key.id)).length;
  return (
    <BulkBar label={t.title} selected={chosen.length} hidden={hidden} onClear={onClear}>
      {offered && (
        <>
          {usable.length > 0 && (
            <Button look="ghost" icon={Hourglass} why={why} onClick={() => start({ name: "expire", keys: usable })}>
              {t.actions.expire}
            </Button>
          )}
          <Button look="ghost-danger" icon={Trash2} why={why} onClick={() => start({ name: "delete", keys: chosen })}>
            {t.actions.delete}
          </Button>
        </>
      )}
    </BulkBar>
  );
}
