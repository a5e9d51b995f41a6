import { Link } from "@tanstack/react-router";
import type { User } from "@/api";
import { compareText } from "@/nodes";
import { printable, text } from "@/text";
import { userWords } from "@/text/users";
import { Avatar, Chips, type Column, Time } from "@/ui";
import { type Holdings, isLocal, type Mentions } from "@/users";

const t = userWords;

export interface UserFacts {
  of(user: User): Holdings;
  mentions: Mentions | undefined;
}

/** Those who are here now come first, then the latest. */
const lastSeen = ({ online, lastSeen }: Holdings) => (online > 0 ? "~" : (lastSeen ?? ""));
const sourceWords = (user: User) => (isLocal(user) ? t.local : user.provider);

export function userColumns({ of, mentions }: UserFacts): Column<User>[] {
  const groups = (user: User) => mentions?.groups(user).map((mention) => mention.name) ?? [];
  return [
    {
      id: "user",
      title: t.columns.user,
      fixed: true,
      sort: (a, b) => compareText(a.name, b.name),
      csv: (user) => user.name,
      cell: (user) => (
        <span className="flex min-w-0 items-center gap-2.5">
          <Avatar name={user.displayName || user.name} />
          <Link to="/users/$id" params={{ id: user.id }} className="truncate font-medium hover:underline">
            {printable(user.name)}
          </Link>
          {user.displayName && <span className="truncate text-ink-3">{printable(user.displayName)}</span>}
        </span>
      ),
    },
    {
      id: "nodes",
      title: t.columns.nodes,
      width: 150,
      sort: (a, b) => of(a).total - of(b).total,
      csv: (user) => String(of(user).total),
      cell: (user) => <NodesCell user={user} has={of(user)} />,
    },
    {
      id: "groups",
      title: t.columns.groups,
      width: 230,
      yields: 3,
      sort: (a, b) => compareText(groups(a).join(" "), groups(b).join(" ")),
      csv: (user) => groups(user).join(" "),
      cell: (user) => <Chips tags={groups(user)} />,
    },
    {
      id: "activity",
      title: t.columns.activity,
      width: 120,
      yields: 2,
      sort: (a, b) => compareText(lastSeen(of(b)), lastSeen(of(a))),
      csv: (user) => of(user).lastSeen ?? "",
      cell: (user) => <LastActivity has={of(user)} />,
    },
    {
      id: "source",
      title: t.columns.source,
      width: 110,
      yields: 4,
      sort: (a, b) => compareText(sourceWords(a), sourceWords(b)),
      csv: sourceWords,
      cell: (user) => <span className="truncate text-ink-2">{printable(sourceWords(user))}</span>,
    },
    {
      id: "created",
      title: t.columns.created,
      width: 110,
      yields: 5,
      sort: (a, b) => compareText(a.createdAt ?? "", b.createdAt ?? ""),
      csv: (user) => user.createdAt ?? "",
      cell: (user) => user.createdAt && <Time at={user.createdAt} focusable={false} className="text-ink-2" />,
    },
    plain("email", (user) => user.email, 220),
    plain("id", (user) => user.id, 80),
  ];
}

function plain(id: "email" | "id", value: (user: User) => string, width: number): Column<User> {
  return {
    id,
    title: t.columns[id],
    width,
    extra: true,
    sort: (a, b) => compareText(value(a), value(b)),
    csv: value,
    cell: (user) => <span className="block truncate text-ink-2">{printable(value(user))}</span>,
  };
}

function NodesCell({ user, has }: { user: User; has: Holdings }) {
  if (has.total === 0) return <span className="text-ink-3">{text.common.none}</span>;
  return (
    <Link
      to="/nodes"
      search={{ q: `user:${user.name.toLowerCase()}` } as never}
      className="text-ink-2 tabular-nums hover:underline"
    >
      {t.online(has.online, has.total)}
    </Link>
  );
}

export function LastActivity({ has, focusable = false }: { has: Holdings; focusable?: boolean }) {
  if (has.online > 0) return <span>{text.common.now}</span>;
  if (has.lastSeen === null) return <span className="text-ink-3">{text.common.never}</span>;
  return <Time at={has.lastSeen} focusable={focusable} className="text-ink-2" />;
}
