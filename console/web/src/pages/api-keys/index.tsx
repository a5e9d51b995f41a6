/** API keys, with which people also sign in to this console. */
import { useQuery } from "@tanstack/react-query";
import { KeySquare, Plus, Trash2 } from "lucide-react";
import { useCallback, useMemo, useState } from "react";
import { type ApiKey, apiKeysQuery, useCan, useSession } from "@/api";
import { matches } from "@/filter";
import { type Selection, SettingsList, tabsOf, useChosen, useCreate, useListPage } from "@/list";
import { SettingsPage } from "@/pages/settings";
import { useBegun, useSearchState } from "@/router/search";
import { text } from "@/text";
import { apiKeys } from "@/text/settings";
import { BulkBar, Button, DataTable, Empty, ErrorState, NotAllowed, useNow, useWrites, WriteButton } from "@/ui";
import { type Action, Start, useApiKeyActions } from "./actions";
import { apiKeyColumns, PhoneRow } from "./columns";
import { Remove, Revoke, Rotate } from "./dialogs";
import { apiKeyFilter, apiKeyFilterFields, apiKeyName, apiKeyState } from "./facts";
import { CreateApiKey } from "./forms";
import { KeyMenu } from "./KeyMenu";

const t = apiKeys;
const usual = { tab: "usable", q: "", sort: "", cols: "" };
const inAddress = { rotate: "" };
const filters: [string, string[]][] = [
  [t.columns.role, ["role:read", "role:operator", "role:admin"]],
  [t.filters.state, ["is:usable", "is:expired"]],
];
const none: readonly ApiKey[] = [];
const rowName = (key: ApiKey) => apiKeyName(key.prefix);
const rowMenu = (key: ApiKey) => <KeyMenu of={key} />;
const newestFirst = (a: ApiKey, b: ApiKey) => Date.parse(b.createdAt) - Date.parse(a.createdAt);

export function ApiKeysPage() {
  const can = useCan();
  const { data, error, refetch } = useQuery({ ...apiKeysQuery, enabled: can("apikeys:read") });
  const [search, setSearch] = useSearchState(inAddress);
  const [begun, setBegun] = useState<Action | null>(null);
  const all = data?.items ?? none;
  const asked = search.rotate ? all.find((key) => key.id === search.rotate) : undefined;
  const action: Action | null = begun ?? (asked && can("apikeys:write") ? { name: "rotate", key: asked } : null);
  // Do not close what was opened in the meantime, such as a key that is shown once: the call for this dialog may end
  // late.
  const close = useCallback(() => {
    setBegun((now) => (now === begun ? null : now));
    if (!begun) setSearch({ rotate: "" });
  }, [begun, setSearch]);
  const { offered, now: connected } = useWrites("apikeys:write");
  const create = () => setBegun({ name: "create" });
  const may = offered && connected;
  useBegun("create", () => may && create());
  useCreate(may, { id: "apikeys.create", label: t.create.open, title: t.create.title, run: create });
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
          <KeyList all={all} loading={!data} />
        )}
      </SettingsPage>
      {action?.name === "create" && <CreateApiKey onClose={close} />}
      {action?.name === "rotate" && <Rotate of={action.key} onClose={close} />}
      {action?.name === "revoke" && <Revoke of={action.key} onClose={close} />}
      {action?.name === "delete" && <Remove of={action.keys} onClose={close} />}
    </Start>
  );
}

function KeyList({ all, loading }: { all: readonly ApiKey[]; loading: boolean }) {
  const { key: session } = useSession();
  const writes = useCan()("apikeys:write");
  const now = useNow();
  const list = useListPage({ id: "api-keys-list", usual, tabs: t.tabs, fields: apiKeyFilterFields });
  const { tab, terms } = list;
  const found = useMemo(() => all.filter((key) => matches(key, terms, apiKeyFilter(now))), [all, terms, now]);
  const rows = useMemo(() => found.filter((key) => tab === "all" || apiKeyState(key, now) === tab), [found, tab, now]);
  const columns = useMemo(() => apiKeyColumns(session.prefix, now), [session.prefix, now]);
  const tabs = tabsOf(t.tabs, (tab) => ({
    count: found.filter((key) => tab === "all" || apiKeyState(key, now) === tab).length,
  }));
  return (
    <SettingsList
      what="api-keys"
      list={list}
      label={text.settings.apiKeys}
      tabs={tabs}
      columns={columns}
      filter={t}
      rows={rows}
      filters={filters}
      words={t.filters.words}
      bulk={<Bulk list={list} all={all} rows={rows} />}
    >
      <DataTable
        {...list.table}
        label={t.list}
        columns={columns}
        rows={rows}
        loading={loading}
        empty={<Nothing filtered={terms.length > 0} onClear={() => list.setTyped("")} />}
        rowName={rowName}
        usual={newestFirst}
        onSelect={writes ? list.setSelected : undefined}
        menu={rowMenu}
        phone={(key) => <PhoneRow of={key} session={session.prefix} now={now} />}
      />
    </SettingsList>
  );
}

function Nothing({ filtered, onClear }: { filtered: boolean; onClear(): void }) {
  return (
    <Empty
      icon={KeySquare}
      title={filtered ? text.table.noMatchTitle : t.emptyTitle}
      action={filtered && <Button onClick={onClear}>{text.table.showWithoutFilter}</Button>}
    >
      {filtered ? text.table.noMatchBody : t.emptyBody}
    </Empty>
  );
}

/** Bulk actions on the selected keys. The session's own key can only be revoked on its own, by typing its name. */
function Bulk({ list, all, rows }: { list: Selection; all: readonly ApiKey[]; rows: readonly ApiKey[] }) {
  const start = useApiKeyActions();
  const { key: session } = useSession();
  const { offered, why } = useWrites("apikeys:write");
  const { chosen, bar } = useChosen(list, all, rows);
  const others = chosen.filter((key) => key.prefix !== session.prefix);
  if (!offered) return null;
  return (
    <BulkBar label={text.settings.apiKeys} {...bar}>
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
