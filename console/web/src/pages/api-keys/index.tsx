/** Keys of the API, which open this console too. */
import { useQuery } from "@tanstack/react-query";
import { clsx } from "clsx";
import { Ban, Copy, KeySquare, Plus, RefreshCw, Trash2 } from "lucide-react";
import { createContext, useCallback, useContext, useMemo, useState } from "react";
import { type ApiKey, apiKeysQuery, useCan, useSession } from "@/api";
import { matches, useFilter } from "@/filter";
import { compareText } from "@/nodes";
import { SettingsPage } from "@/pages/settings";
import { oneOf, useBegun, useSearchState } from "@/router/search";
import { useActions } from "@/shell/actions";
import { printable, text } from "@/text";
import { apiKeys } from "@/text/settings";
import {
  announce,
  Badge,
  BulkBar,
  Button,
  type Column,
  columnsShown,
  copyText,
  DataTable,
  Empty,
  ErrorState,
  ExportMenu,
  FilterChips,
  FilterLine,
  FilterMenu,
  Mark,
  MenuItem,
  MenuLine,
  NotAllowed,
  RowMenu,
  Tabs,
  Time,
  Tip,
  useNow,
  useShortcuts,
  useWrites,
  ViewMenu,
  WriteButton,
} from "@/ui";
import { Remove, Revoke, Rotate } from "./dialogs";
import { apiKeyFilter, apiKeyFilterFields, apiKeyName, apiKeyState } from "./facts";
import { CreateApiKey } from "./forms";

const t = apiKeys;
const usual = { tab: "usable", q: "", sort: "", cols: "", rotate: "" };
const panelId = "api-keys-list";
type Tab = keyof typeof t.tabs;
type Action =
  | { name: "create" }
  | { name: "rotate" | "revoke"; key: ApiKey }
  | { name: "delete"; keys: readonly ApiKey[] };

const Start = createContext<(action: Action) => void>(() => {});
const filters: [string, string[]][] = [
  [t.columns.role, ["role:read", "role:operator", "role:admin"]],
  [t.filters.state, ["is:usable", "is:expired"]],
];
const none: readonly ApiKey[] = [];
const rowId = (key: ApiKey) => key.id;
const rowName = (key: ApiKey) => apiKeyName(key.prefix);
const rowMenu = (key: ApiKey) => <KeyMenu of={key} />;
const newestFirst = (a: ApiKey, b: ApiKey) => Date.parse(b.createdAt) - Date.parse(a.createdAt);

export function ApiKeysPage() {
  const can = useCan();
  const { data, error, refetch } = useQuery({ ...apiKeysQuery, enabled: can("apikeys:read") });
  const [search, setSearch] = useSearchState(usual);
  const [begun, setBegun] = useState<Action | null>(null);
  const all = data?.items ?? none;
  const asked = search.rotate ? all.find((key) => key.id === search.rotate) : undefined;
  const action: Action | null = begun ?? (asked && can("apikeys:write") ? { name: "rotate", key: asked } : null);
  // What was begun since stays, such as a key that is shown once: a call of an earlier dialogue may end late.
  const close = useCallback(() => {
    setBegun((now) => (now === begun ? null : now));
    if (!begun) setSearch({ rotate: "" });
  }, [begun, setSearch]);
  const { offered, now: connected } = useWrites("apikeys:write");
  const create = () => setBegun({ name: "create" });
  const may = offered && connected;
  useBegun("create", () => may && create());
  useShortcuts(may ? [{ keys: "c", label: t.create.open, group: text.shell.groups.page, run: create }] : []);
  useActions(may ? [{ id: "apikeys.create", title: t.create.title, icon: Plus, keys: "c", run: create }] : []);
  return (
    <Start value={setBegun}>
      <SettingsPage
        fill
        title={text.settings.apiKeys}
        actions={
          <WriteButton right="apikeys:write" look="primary" icon={Plus} onClick={create}>
            {t.create.open}
          </WriteButton>
        }
      >
        {!can("apikeys:read") ? (
          <NotAllowed scope="apikeys:read" />
        ) : error && !data ? (
          <ErrorState title={text.settings.apiKeys} error={error} onRetry={() => void refetch()} />
        ) : (
          <KeyList all={all} loading={!data} search={search} setSearch={setSearch} />
        )}
      </SettingsPage>
      {action?.name === "create" && <CreateApiKey onClose={close} />}
      {action?.name === "rotate" && <Rotate of={action.key} onClose={close} />}
      {action?.name === "revoke" && <Revoke of={action.key} onClose={close} />}
      {action?.name === "delete" && <Remove of={action.keys} onClose={close} />}
    </Start>
  );
}

function KeyList({
  all,
  loading,
  search,
  setSearch,
}: {
  all: readonly ApiKey[];
  loading: boolean;
  search: typeof usual;
  setSearch(change: Partial<typeof usual>): void;
}) {
  const { key: session } = useSession();
  const writes = useCan()("apikeys:write");
  const now = useNow();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const tab = oneOf<Tab>(search.tab, t.tabs, "usable");
  const commit = useCallback((q: string) => setSearch({ q }), [setSearch]);
  const { typed, setTyped, terms } = useFilter(search.q, commit, apiKeyFilterFields);
  const rows = useMemo(() => {
    const by = apiKeyFilter(now);
    return all.filter((key) => (tab === "all" || apiKeyState(key, now) === tab) && matches(key, terms, by));
  }, [all, tab, terms, now]);
  const columns = useMemo(() => apiKeyColumns(session.prefix, now), [session.prefix, now]);
  const tabs = (Object.keys(t.tabs) as Tab[]).map((value) => ({
    value,
    label: t.tabs[value],
    count: value === "all" ? all.length : all.filter((key) => apiKeyState(key, now) === value).length,
  }));
  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      <div className="@container shrink-0 border-b border-line bg-canvas px-6 max-md:px-4">
        <div className="flex min-w-0 items-center gap-x-4 @max-[720px]:flex-col @max-[720px]:items-stretch">
          <div className="min-w-0 flex-1">
            <Tabs
              label={text.settings.apiKeys}
              tabs={tabs}
              value={tab}
              onChange={(next) => setSearch({ tab: next })}
              panel={panelId}
            />
          </div>
          <div className="flex items-center gap-2 @max-[720px]:py-2">
            <FilterLine label={t.filterLabel} placeholder={t.filterPlaceholder} value={typed} onChange={setTyped} />
            <FilterMenu groups={filters} words={t.filters.words} value={typed} onChange={setTyped} />
            <ViewMenu columns={columns} chosen={search.cols} onChoose={(cols) => setSearch({ cols })} />
            <ExportMenu what="api-keys" columns={columnsShown(columns, search.cols)} rows={rows} />
          </div>
        </div>
      </div>
      <FilterChips terms={terms} value={typed} onChange={setTyped} />
      <div id={panelId} role="tabpanel" aria-labelledby={`${panelId}-${tab}`} className="flex min-h-0 flex-1 flex-col">
        <DataTable
          label={t.list}
          columns={columns}
          chosen={search.cols}
          rows={rows}
          loading={loading}
          empty={
            <Empty
              icon={KeySquare}
              title={terms.length > 0 ? text.table.noMatchTitle : t.emptyTitle}
              action={terms.length > 0 && <Button onClick={() => setTyped("")}>{text.table.showWithoutFilter}</Button>}
            >
              {terms.length > 0 ? text.table.noMatchBody : t.emptyBody}
            </Empty>
          }
          rowId={rowId}
          rowName={rowName}
          sort={search.sort}
          onSort={(sort) => setSearch({ sort })}
          usual={newestFirst}
          asked={`${tab} ${typed}`}
          selected={selected}
          onSelect={writes ? setSelected : undefined}
          menu={rowMenu}
          phone={(key) => <PhoneRow of={key} session={session.prefix} now={now} />}
        />
      </div>
      <Bulk all={all} rows={rows} selected={selected} onClear={() => setSelected(new Set())} />
    </div>
  );
}

/** What can be done with the chosen keys. That of the session is ended by itself only, with its name typed. */
function Bulk({
  all,
  rows,
  selected,
  onClear,
}: {
  all: readonly ApiKey[];
  rows: readonly ApiKey[];
  selected: ReadonlySet<string>;
  onClear(): void;
}) {
  const start = useContext(Start);
  const { key: session } = useSession();
  const { offered, why } = useWrites("apikeys:write");
  const chosen = useMemo(() => all.filter((key) => selected.has(key.id)), [all, selected]);
  const others = chosen.filter((key) => key.prefix !== session.prefix);
  const hidden = chosen.length - rows.filter((key) => selected.has(key.id)).length;
  if (!offered) return null;
  return (
    <BulkBar label={text.settings.apiKeys} selected={chosen.length} hidden={hidden} onClear={onClear}>
      {others.length < chosen.length && (
        <span className="shrink-0 px-2 whitespace-nowrap text-ink-2">{t.remove.ownStays}</span>
      )}
      {others.length > 0 && (
        <Button look="ghost-danger" icon={Trash2} why={why} onClick={() => start({ name: "delete", keys: others })}>
          {t.actions.delete}
        </Button>
      )}
    </BulkBar>
  );
}

const soon = 14 * 864e5;

function Expires({ of: key, now }: { of: ApiKey; now: number }) {
  const over = apiKeyState(key, now) === "expired";
  return (
    <Time
      at={key.expiration}
      focusable={false}
      format={over ? t.expired : undefined}
      className={clsx(!over && Date.parse(key.expiration) - now < soon ? "text-warn" : "text-ink-2")}
    />
  );
}

const StateMark = ({ of: key, now }: { of: ApiKey; now: number }) => {
  const state = apiKeyState(key, now);
  return <Mark state={state === "usable" ? "on" : "off"} label={t.state[state]} />;
};

function apiKeyColumns(session: string, now: number): Column<ApiKey>[] {
  return [
    {
      id: "key",
      title: t.columns.key,
      width: 248,
      fixed: true,
      sort: (a, b) => compareText(a.prefix, b.prefix),
      csv: (key) => apiKeyName(key.prefix),
      cell: (key) => (
        <span className="flex min-w-0 items-center gap-2.5">
          <StateMark of={key} now={now} />
          <span className="truncate font-mono text-12 font-medium">{apiKeyName(key.prefix)}</span>
          {key.prefix === session && <Badge tone="accent">{t.thisSession}</Badge>}
        </span>
      ),
    },
    {
      id: "comment",
      title: t.columns.comment,
      sort: (a, b) => compareText(a.comment, b.comment),
      csv: (key) => key.comment,
      cell: (key) => <span className="block truncate">{printable(key.comment)}</span>,
    },
    {
      id: "role",
      title: t.columns.role,
      width: 96,
      yields: 2,
      sort: (a, b) => compareText(a.role, b.role),
      csv: (key) => key.role,
      cell: (key) => t.roles[key.role],
    },
    {
      id: "scopes",
      title: t.columns.scopes,
      width: 152,
      yields: 4,
      csv: (key) => key.scopes.join(" "),
      cell: (key) =>
        key.scopes.length === 0 ? (
          <span className="text-ink-2">{t.allScopes}</span>
        ) : (
          <Tip label={key.scopes.join(", ")}>
            <span className="block truncate font-mono text-12 text-ink-2">{key.scopes.join(", ")}</span>
          </Tip>
        ),
    },
    {
      id: "lastUsed",
      title: t.columns.lastUsed,
      width: 104,
      yields: 1,
      sort: (a, b) => Date.parse(a.lastSeen ?? "0") - Date.parse(b.lastSeen ?? "0"),
      csv: (key) => key.lastSeen ?? "",
      cell: (key) =>
        key.lastSeen ? (
          <Time at={key.lastSeen} focusable={false} className="text-ink-2" />
        ) : (
          <span className="text-ink-3">{text.common.never}</span>
        ),
    },
    {
      id: "from",
      title: t.columns.from,
      width: 132,
      yields: 5,
      sort: (a, b) => compareText(a.lastUsedFrom, b.lastUsedFrom),
      csv: (key) => key.lastUsedFrom,
      cell: (key) => <span className="block truncate font-mono text-12 text-ink-2">{key.lastUsedFrom}</span>,
    },
    {
      id: "created",
      title: t.columns.created,
      width: 104,
      yields: 3,
      sort: (a, b) => Date.parse(a.createdAt) - Date.parse(b.createdAt),
      csv: (key) => key.createdAt,
      cell: (key) => <Time at={key.createdAt} focusable={false} className="text-ink-2" />,
    },
    {
      id: "expires",
      title: t.columns.expires,
      width: 128,
      sort: (a, b) => Date.parse(a.expiration) - Date.parse(b.expiration),
      csv: (key) => key.expiration,
      cell: (key) => <Expires of={key} now={now} />,
    },
  ];
}

function KeyMenu({ of: key }: { of: ApiKey }) {
  const start = useContext(Start);
  const { offered, why } = useWrites("apikeys:write");
  const now = useNow();
  const name = apiKeyName(key.prefix);
  const usable = apiKeyState(key, now) === "usable";
  return (
    <RowMenu name={name}>
      <MenuItem
        icon={Copy}
        onSelect={async () => announce((await copyText(name)) ? text.common.copied : text.common.copyByHand)}
      >
        {t.actions.copy}
      </MenuItem>
      {offered && (
        <>
          <MenuLine />
          {usable ? (
            <>
              <MenuItem icon={RefreshCw} why={why} onSelect={() => start({ name: "rotate", key })}>
                {t.actions.rotate}
              </MenuItem>
              <MenuItem icon={Ban} danger why={why} onSelect={() => start({ name: "revoke", key })}>
                {t.actions.revoke}
              </MenuItem>
            </>
          ) : (
            <MenuItem icon={Trash2} danger why={why} onSelect={() => start({ name: "delete", keys: [key] })}>
              {t.actions.delete}
            </MenuItem>
          )}
        </>
      )}
    </RowMenu>
  );
}

function PhoneRow({ of: key, session, now }: { of: ApiKey; session: string; now: number }) {
  return (
    <div className="flex w-full min-w-0 items-center gap-3">
      <StateMark of={key} now={now} />
      <div className="min-w-0 flex-1">
        <div className="truncate font-mono text-13 font-medium">{apiKeyName(key.prefix)}</div>
        <div className="truncate text-12 text-ink-2">
          {[t.roles[key.role], printable(key.comment)].filter(Boolean).join(" · ")}
        </div>
      </div>
      <div className="flex shrink-0 flex-col items-end text-12">
        {key.prefix === session && <Badge tone="accent">{t.thisSession}</Badge>}
        <Expires of={key} now={now} />
      </div>
      <KeyMenu of={key} />
    </div>
  );
}
