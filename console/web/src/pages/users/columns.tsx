import { Link } from "@tanstack/react-router";
import type { User } from "@/api";
import { compareText, printable, text } from "@/text";
import { userWords } from "@/text/users";
import { Avatar, Chips, type Column, Time, textColumn } from "@/ui";
import { type Holdings, isLocal, type Mentions, roleName, UserBadges } from "@/users";

const t = userWords;

export interface UserFacts {
  of(user: User): Holdings;
  mentions: Mentions | undefined;
}

/** Users who are online come first, then the most recently seen. */
const lastSeen = ({ online, lastSeen }: Holdings) => (online > 0 ? "~" : (lastSeen ?? ""));
const sourceWords = (user: User) => (isLocal(user) ? t.local : user.provider);

export function userColumns({ of, mentions }: UserFacts): Column<User>[] {
  const groups = (user: User) => mentions?.groups(user).map((mention) => mention.name) ?? [];
  return [
    textColumn({
      id: "user",
      title: t.columns.user,
      fixed: true,
      value: (user) => user.name,
      cell: (user) => (
        <span className="flex min-w-0 items-center gap-2.5">
          <Avatar name={user.displayName || user.name} />
          <Link to="/users/$id" params={{ id: user.id }} className="truncate font-medium hover:underline">
            {printable(user.name)}
          </Link>
          {user.displayName && <span className="truncate text-ink-3">{printable(user.displayName)}</span>}
          <UserBadges user={user} />
        </span>
      ),
    }),
    textColumn({
      id: "role",
      title: t.columns.role,
      width: 100,
      yields: 1,
      value: roleName,
      cell: (user) =>
        roleName(user) ? (
          <span className="truncate text-ink-2">{roleName(user)}</span>
        ) : (
          <span className="text-ink-3">{text.common.none}</span>
        ),
    }),
    {
      id: "nodes",
      title: t.columns.nodes,
      width: 150,
      sort: (a, b) => of(a).total - of(b).total,
      csv: (user) => String(of(user).total),
      cell: (user) => <NodesCell user={user} has={of(user)} />,
    },
    textColumn({
      id: "groups",
      title: t.columns.groups,
      width: 230,
      yields: 3,
      value: (user) => groups(user).join(" "),
      cell: (user) => <Chips tags={groups(user)} />,
    }),
    {
      id: "activity",
      title: t.columns.activity,
      width: 120,
      yields: 2,
      sort: (a, b) => compareText(lastSeen(of(b)), lastSeen(of(a))),
      csv: (user) => of(user).lastSeen ?? "",
      cell: (user) => <LastActivity has={of(user)} />,
    },
    textColumn({
      id: "source",
      title: t.columns.source,
      width: 110,
      yields: 4,
      value: sourceWords,
      cell: (user) => <span className="truncate text-ink-2">{printable(sourceWords(user))}</span>,
    }),
    textColumn({
      id: "created",
      title: t.columns.created,
      width: 110,
      yields: 5,
      value: (user) => user.createdAt ?? "",
      cell: (user) => user.createdAt && <Time at={user.createdAt} focusable={false} className="text-ink-2" />,
    }),
    textColumn({ id: "email", title: t.columns.email, width: 220, extra: true, value: (user) => user.email }),
    textColumn({ id: "id", title: t.columns.id, width: 80, extra: true, value: (user) => user.id }),
  ];
}

function NodesCell({ user, has }: { user: User; has: Holdings }) {
  if (has.total === 0) return <span className="text-ink-3">{text.common.none}</span>;
  const online = t.online(has.online, has.total);
  return (
    <Link
      to="/nodes"
      search={{ q: `user:${user.name.toLowerCase()}` } as never}
      aria-label={t.onlineOf(online, printable(user.name))}
      className="text-ink-2 tabular-nums hover:underline"
    >
      {online}
    </Link>
  );
}

export function LastActivity({ has, focusable = false }: { has: Holdings; focusable?: boolean }) {
  if (has.online > 0) return <span>{text.common.now}</span>;
  if (has.lastSeen === null) return <span className="text-ink-3">{text.common.never}</span>;
  return <Time at={has.lastSeen} focusable={focusable} className="text-ink-2" />;
}
