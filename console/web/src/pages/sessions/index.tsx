/** The sessions of everyone who has signed in, for administrators. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Ban, LockKeyhole, MonitorSmartphone, UserRound } from "lucide-react";
import { useCallback, useMemo, useState } from "react";
import { type PersonSession, sessionsQuery, useSession } from "@/api";
import { matches } from "@/filter";
import { SettingsList, tabsOf, useListPage } from "@/list";
import { SettingsPage } from "@/pages/settings";
import { compareText, text } from "@/text";
import { sessionsPage } from "@/text/settings";
import { DataTable, Empty, ErrorState, MenuItem, MenuLine, NoMatch, RowMenu } from "@/ui";
import { useAdminWrites } from "@/users";
import { PhoneRow, sessionColumns } from "./columns";
import { sessionFilter, sessionFilterFields, sessionName } from "./facts";
import { Revoke } from "./Revoke";

const t = sessionsPage;
const usual = { tab: "all", q: "", sort: "", cols: "" };
const filters: [string, string[]][] = [[t.filters.client, ["client:console", "client:cli"]]];
const none: readonly PersonSession[] = [];
const columns = sessionColumns();
const byPerson = (a: PersonSession, b: PersonSession) =>
  compareText(a.user.name, b.user.name) || Date.parse(b.createdAt) - Date.parse(a.createdAt);

export function SessionsPage() {
  // The server shows sessions only to admins, and only if the API key has access to users.
  const { offered } = useAdminWrites();
  const { key } = useSession();
  const { data, error, refetch } = useQuery({ ...sessionsQuery, enabled: offered });
  const [revoked, setRevoked] = useState<PersonSession | null>(null);
  const close = useCallback(() => setRevoked(null), []);
  return (
    <SettingsPage fill title={text.settings.sessions}>
      {!offered ? (
        <Empty icon={LockKeyhole} title={text.common.notAllowedTitle}>
          {key.role === "admin" ? text.common.notAllowedBody("users:write") : t.notAllowed}
        </Empty>
      ) : error && !data ? (
        <ErrorState title={text.settings.sessions} error={error} onRetry={() => void refetch()} />
      ) : (
        <SessionList all={data ?? none} loading={!data} onRevoke={setRevoked} />
      )}
      {revoked && <Revoke session={revoked} onClose={close} />}
    </SettingsPage>
  );
}

function SessionList({
  all,
  loading,
  onRevoke,
}: {
  all: readonly PersonSession[];
  loading: boolean;
  onRevoke(session: PersonSession): void;
}) {
  const list = useListPage({ id: "sessions-list", usual, tabs: t.tabs, fields: sessionFilterFields });
  const { tab, terms } = list;
  const found = useMemo(() => all.filter((each) => matches(each, terms, sessionFilter)), [all, terms]);
  const rows = useMemo(() => found.filter(({ client }) => tab === "all" || client === tab), [found, tab]);
  const tabs = tabsOf(t.tabs, (value) => ({
    count: found.filter(({ client }) => value === "all" || client === value).length,
  }));
  const menu = useCallback(
    (session: PersonSession) => <SessionMenu session={session} onRevoke={() => onRevoke(session)} />,
    [onRevoke],
  );
  return (
    <SettingsList
      what="sessions"
      list={list}
      label={text.settings.sessions}
      tabs={tabs}
      columns={columns}
      filter={t}
      rows={rows}
      filters={filters}
      words={t.filters.words}
    >
      <DataTable
        {...list.table}
        label={t.list}
        columns={columns}
        rows={rows}
        loading={loading}
        empty={
          list.filtered ? (
            <NoMatch onClear={list.showAll} />
          ) : (
            <Empty icon={MonitorSmartphone} title={t.emptyTitle}>
              {t.emptyBody}
            </Empty>
          )
        }
        rowName={sessionName}
        usual={byPerson}
        menu={menu}
        phone={(session) => <PhoneRow of={session} menu={menu(session)} />}
      />
    </SettingsList>
  );
}

function SessionMenu({ session, onRevoke }: { session: PersonSession; onRevoke(): void }) {
  const navigate = useNavigate();
  const { why } = useAdminWrites();
  return (
    <RowMenu name={sessionName(session)}>
      <MenuItem icon={UserRound} onSelect={() => void navigate({ to: "/users/$id", params: { id: session.user.id } })}>
        {t.actions.user}
      </MenuItem>
      <MenuLine />
      <MenuItem icon={Ban} danger why={why} onSelect={onRevoke}>
        {t.actions.revoke}
      </MenuItem>
    </RowMenu>
  );
}
