import type { ReactNode } from "react";
import type { PersonSession } from "@/api";
import { printable } from "@/text";
import { sessionsPage as t } from "@/text/settings";
import { Badge, type Column, Time, textColumn, timeColumn } from "@/ui";
import { UserLink } from "@/users";

const Current = ({ of: session }: { of: PersonSession }) =>
  session.current && (
    <Badge tone="accent" className="shrink-0">
      {t.thisSession}
    </Badge>
  );

export function sessionColumns(): Column<PersonSession>[] {
  return [
    textColumn({
      id: "user",
      title: t.columns.user,
      width: 240,
      fixed: true,
      value: (session) => session.user.name,
      cell: (session) => (
        <span className="flex min-w-0 items-center gap-2.5">
          <UserLink id={session.user.id} name={session.user.name} className="font-medium" />
          <Current of={session} />
        </span>
      ),
    }),
    textColumn({
      id: "client",
      title: t.columns.client,
      width: 128,
      yields: 2,
      value: (session) => t.clients[session.client],
    }),
    textColumn({
      id: "description",
      title: t.columns.description,
      value: (session) => session.description,
      cell: (session) => <span className="block truncate">{printable(session.description)}</span>,
    }),
    timeColumn({ id: "lastUsed", title: t.columns.lastUsed, width: 112, yields: 1, at: (session) => session.lastSeen }),
    textColumn({
      id: "from",
      title: t.columns.from,
      width: 140,
      yields: 4,
      value: (session) => session.lastUsedFrom,
      cell: (session) => <span className="block truncate font-mono text-12 text-ink-2">{session.lastUsedFrom}</span>,
    }),
    timeColumn({ id: "created", title: t.columns.created, width: 112, yields: 3, at: (session) => session.createdAt }),
    timeColumn({ id: "expires", title: t.columns.expires, width: 112, at: (session) => session.expiration }),
    textColumn({ id: "id", title: t.columns.id, width: 80, extra: true, value: (session) => session.id }),
  ];
}

/** A session on a phone, in two lines. */
export function PhoneRow({ of: session, menu }: { of: PersonSession; menu: ReactNode }) {
  return (
    <div className="flex w-full min-w-0 items-center gap-3">
      <div className="min-w-0 flex-1">
        <UserLink id={session.user.id} name={session.user.name} className="text-14 font-medium" />
        <div className="truncate text-12 text-ink-2">
          {[t.clients[session.client], printable(session.description)].filter(Boolean).join(" · ")}
        </div>
      </div>
      <Current of={session} />
      <Time at={session.lastSeen ?? session.createdAt} focusable={false} className="shrink-0 text-12 text-ink-3" />
      {menu}
    </div>
  );
}
