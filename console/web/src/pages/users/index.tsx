/** The list of users. */
import { Link, useNavigate } from "@tanstack/react-router";
import { Plus, Trash2, UserRound } from "lucide-react";
import { useCallback, useMemo } from "react";
import { type User, useCan, useNodes, useUsers } from "@/api";
import { matches } from "@/filter";
import { ListPage, type Selection, tabsOf, useChosen, useCreate, useListPage } from "@/list";
import { useBegun } from "@/router/search";
import { compareText, printable, text } from "@/text";
import { userWords } from "@/text/users";
import {
  Avatar,
  BulkBar,
  Button,
  columnsShown,
  DataTable,
  Empty,
  ExportMenu,
  NoMatch,
  useNow,
  useShown,
  useWrites,
  WriteButton,
} from "@/ui";
import {
  type Holdings,
  holdingsOf,
  isActive,
  isLocal,
  UserActionsProvider,
  UserBadges,
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

type Tab = keyof typeof t.tabs;
const inTab: Record<Tab, (has: Holdings, now: number) => boolean> = {
  all: () => true,
  active: isActive,
  idle: (has, now) => has.total > 0 && !isActive(has, now),
  none: (has) => has.total === 0,
};

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
  const query = useUsers();
  const { data: nodes } = useNodes();
  const mentions = usePolicyMentions();
  const now = useNow();
  const navigate = useNavigate();
  const writes = useCan()("users:write");
  const list = useListPage({ id: "users-list", usual, tabs: t.tabs, fields: userFilterFields });
  const { tab, terms } = list;
  const users = query.data?.items ?? nobody;
  const of = useMemo(() => holdingsOf(nodes?.items ?? [], nodes?.complete ?? false), [nodes]);

  const found = useMemo(() => {
    const by = userFilter(of, mentions, now);
    return users.filter((user) => matches(user, terms, by));
  }, [users, of, mentions, terms, now]);
  const rows = useMemo(() => found.filter((user) => inTab[tab](of(user), now)), [found, of, tab, now]);
  const columns = useMemo(() => userColumns({ of, mentions }), [of, mentions]);
  const tabs = useMemo(
    () => tabsOf(t.tabs, (value) => ({ count: found.filter((user) => inTab[value](of(user), now)).length })),
    [found, of, now],
  );

  useShown(text.users.title, query.data && rows.length, terms);
  const onOpen = useCallback((user: User) => void navigate({ to: "/users/$id", params: { id: user.id } }), [navigate]);
  const keys = useUserKeys();

  return (
    <ListPage
      list={list}
      title={text.users.title}
      tabs={tabs}
      columns={columns}
      filter={t}
      found={rows.length}
      filterMenu={<UserFilterMenu users={users} mentions={mentions} value={list.typed} onChange={list.setTyped} />}
      actions={
        <>
          <ExportMenu what="users" columns={columnsShown(columns, list.search.cols)} rows={rows} />
          <AddButton />
        </>
      }
      query={query}
      bulk={<Bulk list={list} users={users} rows={rows} />}
    >
      <DataTable
        {...list.table}
        label={t.list}
        columns={columns}
        rows={rows}
        loading={!query.data}
        empty={list.filtered ? <NoMatch onClear={list.showAll} /> : <NoUsers />}
        rowName={rowName}
        usual={byName}
        onSelect={writes ? list.setSelected : undefined}
        onOpen={onOpen}
        menu={rowMenu}
        rowKeys={keys}
        phone={(user) => <PhoneRow user={user} has={of(user)} />}
      />
    </ListPage>
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
  const run = () => start({ name: "create" });
  useBegun("create", () => may && run());
  useCreate(may, { id: "users.add", label: t.add, words: ["new", "person"], run });
  return keys;
}

function AddButton() {
  const start = useUserActions();
  return (
    <WriteButton right="users:write" look="primary" icon={Plus} onClick={() => start({ name: "create" })}>
      {t.add}
    </WriteButton>
  );
}

const NoUsers = () => (
  <Empty icon={UserRound} title={t.emptyTitle} action={<AddButton />}>
    {t.emptyBody}
  </Empty>
);

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
      <UserBadges user={user} />
      <span className="text-12 text-ink-3">
        <LastActivity has={has} />
      </span>
      <UserMenu user={user} />
    </div>
  );
}

function Bulk({ list, users, rows }: { list: Selection; users: readonly User[]; rows: readonly User[] }) {
  const start = useUserActions();
  const { offered, why } = useWrites("users:write");
  const { chosen, bar } = useChosen(list, users, rows);
  return (
    <BulkBar label={text.users.title} {...bar}>
      {offered && (
        <Button
          look="ghost-danger"
          icon={Trash2}
          why={why}
          onClick={() => start({ name: "delete", users: chosen, onDone: bar.onClear })}
        >
          {t.bulk.delete}
        </Button>
      )}
    </BulkBar>
  );
}
