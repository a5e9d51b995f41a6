/** Pre-auth keys, with which nodes join without anybody signing in. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Hourglass, KeyRound, Plus, Trash2 } from "lucide-react";
import { useCallback, useMemo } from "react";
import { type PreAuthKey, preAuthKeysQuery, useCan, useNodes } from "@/api";
import { matches } from "@/filter";
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
import { ListPage, type Selection, tabsOf, useChosen, useCreate, useListPage } from "@/list";
import { useBegun } from "@/router/search";
import { printable, text } from "@/text";
import {
  BulkBar,
  Button,
  columnsShown,
  DataTable,
  Empty,
  ExportMenu,
  NoMatch,
  NotAllowed,
  SidePanel,
  Time,
  useNow,
  useShown,
  useWrites,
  WriteButton,
} from "@/ui";
import { keyColumns } from "./columns";
import { useCreators } from "./creators";
import { KeyFilterMenu } from "./FilterMenu";
import { KeySummary } from "./KeySummary";

const t = text.keys;
const usual = { tab: "usable", q: "", sort: "", cols: "", key: "" };

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
  const query = useQuery({ ...preAuthKeysQuery, enabled: can("preauthkeys:read") });
  const { data: nodes } = useNodes();
  const powerful = usePolicyTags()?.powerful;
  const creators = useCreators(query.data?.items);
  const now = useNow();
  const list = useListPage({ id: "keys-list", usual, tabs: t.tabs, fields: keyFilterFields });
  const { tab, terms, search, setSearch } = list;
  const all = query.data?.items ?? none;

  const found = useMemo(() => all.filter((key) => matches(key, terms, keyFilter(now))), [all, terms, now]);
  const rows = useMemo(() => found.filter((key) => tab === "all" || keyState(key, now) === tab), [found, tab, now]);
  const columns = useMemo(
    () => keyColumns({ nodes: nodesByKey(nodes?.items ?? []), creators, powerful: powerful ?? [], now }),
    [nodes, creators, powerful, now],
  );
  const tabs = useMemo(
    () =>
      tabsOf(t.tabs, (tab) => ({ count: found.filter((key) => tab === "all" || keyState(key, now) === tab).length })),
    [found, now],
  );
  const open = search.key ? all.find((key) => key.id === search.key) : undefined;

  useShown(t.title, query.data && rows.length, terms);
  const onOpen = useCallback((key: PreAuthKey) => setSearch({ key: key.id }, "push"), [setSearch]);
  const rowKeys = useKeyKeys();

  return (
    <ListPage
      list={list}
      title={t.title}
      tabs={tabs}
      columns={columns}
      filter={t}
      found={rows.length}
      filterMenu={<KeyFilterMenu keys={all} value={list.typed} onChange={list.setTyped} />}
      actions={
        <>
          <ExportMenu what="keys" columns={columnsShown(columns, search.cols)} rows={rows} />
          <CreateButton />
        </>
      }
      query={query}
      bulk={<Bulk list={list} all={all} rows={rows} now={now} />}
      aside={
        open && (
          <SidePanel
            title={<span className="font-mono">{keyName(open)}</span>}
            onClose={() => setSearch({ key: "" })}
            actions={<KeyMenu of={open} />}
          >
            <KeySummary of={open} creator={creators?.get(open.id)} />
          </SidePanel>
        )
      }
    >
      {can("preauthkeys:read") ? (
        <DataTable
          {...list.table}
          label={t.list}
          columns={columns}
          rows={rows}
          loading={!query.data}
          empty={<Nothing any={all.length > 0} filtered={list.filtered} onClear={list.showAll} />}
          rowName={keyName}
          usual={newestFirst}
          onSelect={can("preauthkeys:write") ? list.setSelected : undefined}
          onOpen={onOpen}
          openId={open?.id}
          menu={rowMenu}
          rowKeys={rowKeys}
          phone={(key) => <PhoneRow of={key} now={now} />}
        />
      ) : (
        <NotAllowed scope="preauthkeys:read" />
      )}
    </ListPage>
  );
}

function useKeyKeys() {
  const start = useKeyActions();
  const { offered, now } = useWrites("preauthkeys:write");
  const may = offered && now;
  const run = () => start({ name: "create" });
  useBegun("create", () => may && run());
  useCreate(may, { id: "keys.create", label: t.create.open, title: t.create.title, words: ["new"], run });
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
        <div className="truncate text-12 text-ink-2">
          {[key.description, keyOwnerWords(key)]
            .filter(Boolean)
            .map((part) => printable(part))
            .join(" · ")}
        </div>
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
  list,
  all,
  rows,
  now,
}: {
  list: Selection;
  all: readonly PreAuthKey[];
  rows: readonly PreAuthKey[];
  now: number;
}) {
  const start = useKeyActions();
  const { offered, why } = useWrites("preauthkeys:write");
  const { chosen, bar } = useChosen(list, all, rows);
  const usable = chosen.filter((key) => keyState(key, now) === "usable");
  return (
    <BulkBar label={t.title} {...bar}>
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
