/** The list of users. */
import { Link, useNavigate } from "@tanstack/react-router";
import { Plus, Trash2, UserRound } from "lucide-react";
import { useCallback, useMemo, useState } from "react";
import { type User, useCan, useNodes, useUsers } from "@/api";
import { matches, useFilter } from "@/filter";
import { compareText } from "@/nodes";
import { oneOf, useBegun, useSearchState } from "@/router/search";
import { useActions } from "@/shell/actions";
import { printable, text } from "@/text";
import { userWords } from "@/text/users";
import {
  Avatar,
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
  PageHead,
  Tabs,
  useNow,
  useShortcuts,
  useShown,
  useWrites,
  ViewMenu,
  WriteButton,
} from "@/ui";
import {
  type Holdings,
  holdingsOf,
  isActive,
  isLocal,
  UserActionsProvider,
  UserMenu,
  usePolicyMentions,
  userFilter,
  userFilterFields,
  useUserActions,
} from "@/users";
import { LastActivity, userColumns } from "./columns";
import { UserFilterMenu } from "./FilterMenu";

const t = userWords;
const usual = { tab: "all", q: "", sort: "", cols: "" };
const panelId = "users-list";

type Tab = keyof typeof t.tabs;
const inTab: Record<Tab, (has: Holdings, now: number) => boolean> = {
  all: () => true,
  active: isActive,
  idle: (has, now) => has.total > 0 && !isActive(has, now),
  none: (has) => has.total === 0,
};

const rowId = (user: User) => user.id;
const rowName = (user: User) => printable(user.name);
const rowMenu = (user: User) => <UserMenu user={user} />;
const byName = (a: User, b: User) => compareText(a.name, b.name);
const nobody: readonly User[] = [];

export function UsersPage() {
  return (
    <UserActionsProvider>
      <UsersList />
    </UserActionsProvider>
  );
}

function UsersList() {
  const { data, error, refetch } = useUsers();
  const { data: nodes } = useNodes();
  const mentions = usePolicyMentions();
  const now = useNow();
  const navigate = useNavigate();
  const [search, setSearch] = useSearchState(usual);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const writes = useCan()("users:write");
  const tab = oneOf<Tab>(search.tab, inTab, "all");
  const users = data?.items ?? nobody;
  const of = useMemo(() => holdingsOf(nodes?.items ?? [], nodes?.complete ?? false), [nodes]);

  const commit = useCallback((q: string) => setSearch({ q }), [setSearch]);
  const { typed, setTyped, query, terms } = useFilter(search.q, commit, userFilterFields);
  const rows = useMemo(() => {
    const by = userFilter(of, mentions, now);
    return users.filter((user) => inTab[tab](of(user), now) && matches(user, terms, by));
  }, [users, of, mentions, tab, terms, now]);
  const columns = useMemo(() => userColumns({ of, mentions }), [of, mentions]);
  const filtered = tab !== "all" || terms.length > 0;

  useShown(text.users.title, data && rows.length, terms);
  const onOpen = useCallback((user: User) => void navigate({ to: "/users/$id", params: { id: user.id } }), [navigate]);
  const { keys, start } = useUserKeys();
  const tabs = useMemo(
    () =>
      (Object.keys(t.tabs) as Tab[]).map((value) => ({
        value,
        label: t.tabs[value],
        count: users.filter((user) => inTab[value](of(user), now)).length,
      })),
    [users, of, now],
  );
  const groups = useMemo(
    () => [...new Set(users.flatMap((user) => mentions?.groups(user).map((m) => m.name) ?? []))].sort(compareText),
    [users, mentions],
  );
  const providers = useMemo(
    () => [...new Set(users.filter((user) => !isLocal(user)).map((user) => user.provider.toLowerCase()))].sort(),
    [users],
  );

  return (
    <div className="relative flex h-full min-w-0 flex-col">
      <PageHead
        title={text.users.title}
        below={
          <div className="mt-2 flex min-w-0 items-center gap-x-4 @max-[880px]:flex-col @max-[880px]:items-stretch">
            <div className="min-w-0 flex-1 @max-[880px]:w-full @max-[880px]:overflow-hidden">
              <Tabs
                label={text.users.title}
                tabs={tabs}
                value={tab}
                onChange={(value) => setSearch({ tab: value })}
                panel={panelId}
              />
            </div>
            <div className="flex items-center gap-2 @max-[880px]:py-2">
              <FilterLine label={t.filterLabel} placeholder={t.filterPlaceholder} value={typed} onChange={setTyped} />
              <UserFilterMenu groups={groups} providers={providers} value={typed} onChange={setTyped} />
              <ViewMenu columns={columns} chosen={search.cols} onChoose={(cols) => setSearch({ cols })} />
            </div>
          </div>
        }
      >
        <ExportMenu what="users" columns={columnsShown(columns, search.cols)} rows={rows} />
        <WriteButton right="users:write" look="primary" icon={Plus} onClick={() => start({ name: "create" })}>
          {t.add}
        </WriteButton>
      </PageHead>
      <FilterChips terms={terms} value={typed} onChange={setTyped} />
      <div id={panelId} role="tabpanel" aria-labelledby={`${panelId}-${tab}`} className="flex min-h-0 flex-1 flex-col">
        {error && !data ? (
          <ErrorState title={text.users.title} error={error} onRetry={() => void refetch()} />
        ) : (
          <DataTable
            label={t.list}
            columns={columns}
            chosen={search.cols}
            rows={rows}
            loading={!data}
            empty={
              filtered ? (
                <NoMatch
                  onClear={() => {
                    setTyped("");
                    setSearch({ q: "", tab: "all" });
                  }}
                />
              ) : (
                <NoUsers />
              )
            }
            rowId={rowId}
            rowName={rowName}
            sort={search.sort}
            onSort={(sort) => setSearch({ sort })}
            usual={byName}
            asked={`${tab} ${query}`}
            selected={selected}
            onSelect={writes ? setSelected : undefined}
            onOpen={onOpen}
            menu={rowMenu}
            rowKeys={keys}
            phone={(user) => <PhoneRow user={user} has={of(user)} />}
          />
        )}
      </div>
      <Bulk users={users} rows={rows} selected={selected} onClear={() => setSelected(new Set())} />
    </div>
  );
}

function useUserKeys() {
  const start = useUserActions();
  const writes = useWrites("users:write");
  const may = writes.offered && writes.now;
  const keys = useMemo(
    () =>
      may
        ? [
            {
              keys: "e",
              label: t.actions.rename,
              run: (user: User) => {
                if (isLocal(user)) start({ name: "rename", user });
              },
            },
            { keys: "Delete", label: t.actions.delete, run: (user: User) => start({ name: "delete", users: [user] }) },
          ]
        : [],
    [may, start],
  );
  const add = () => start({ name: "create" });
  useBegun("create", () => may && add());
  useShortcuts(may ? [{ keys: "c", label: t.add, group: text.shell.groups.page, run: add }] : []);
  useActions(may ? [{ id: "users.add", title: t.add, icon: Plus, keys: "c", words: ["new", "person"], run: add }] : []);
  return { keys, start };
}

function NoUsers() {
  const start = useUserActions();
  return (
    <Empty
      icon={UserRound}
      title={t.emptyTitle}
      action={
        <WriteButton right="users:write" look="primary" icon={Plus} onClick={() => start({ name: "create" })}>
          {t.add}
        </WriteButton>
      }
    >
      {t.emptyBody}
    </Empty>
  );
}

function PhoneRow({ user, has }: { user: User; has: Holdings }) {
  return (
    <div className="flex w-full min-w-0 items-center gap-3">
      <Avatar name={user.displayName || user.name} />
      <div className="min-w-0 flex-1">
        <Link to="/users/$id" params={{ id: user.id }} className="block truncate text-14 font-medium">
          {printable(user.name)}
        </Link>
        <div className="truncate text-12 text-ink-2">
          {has.total > 0 ? t.online(has.online, has.total) : t.tabs.none}
          {user.displayName && ` · ${printable(user.displayName)}`}
        </div>
      </div>
      <span className="text-12 text-ink-3">
        <LastActivity has={has} />
      </span>
      <UserMenu user={user} />
    </div>
  );
}

function Bulk({
  users,
  rows,
  selected,
  onClear,
}: {
  users: readonly User[];
  rows: readonly User[];
  selected: ReadonlySet<string>;
  onClear(): void;
}) {
  const start = useUserActions();
  const { offered, why } = useWrites("users:write");
  const chosen = useMemo(() => users.filter((user) => selected.has(user.id)), [users, selected]);
  const hidden = chosen.length - rows.filter((user) => selected.has(user.id)).length;
  return (
    <BulkBar label={text.users.title} selected={chosen.length} hidden={hidden} onClear={onClear}>
      {offered && (
        <Button
          look="ghost-danger"
          icon={Trash2}
          why={why}
          onClick={() => start({ name: "delete", users: chosen, onDone: onClear })}
        >
          {t.bulk.delete}
        </Button>
      )}
    </BulkBar>
  );
}
