import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { preAuthKeysQuery, serverQuery, useAllNodes, useCan, usePresence, useUsers } from "@/api";
import { waitingRoutes } from "@/nodes";
import { overviewWords } from "@/text/overview";
import { Skeleton, useNow } from "@/ui";
import { holdingsOf, isActive } from "@/users/facts";
import { courseOf, isHealthy, millisecondWords, nearest, outline, routesInService, usableKeys } from "./figures";

const t = overviewWords.figures;

/** Six figures, each linked to the list behind it. Figures that a key may not see are omitted. */
export function Figures() {
  const can = useCan();
  return (
    <section aria-label={t.title}>
      <ul className="grid grid-cols-6 overflow-hidden rounded-lg border border-line bg-line max-lg:grid-cols-3 max-sm:grid-cols-2 [gap:1px]">
        {can("nodes:read") && <NodeFigures />}
        {can("users:read") && can("nodes:read") && <UserFigure />}
        {can("routes:read") && can("nodes:read") && <RouteFigure />}
        {can("preauthkeys:read") && <KeyFigure />}
        {can("service:read") && <RelayFigure />}
      </ul>
    </section>
  );
}

function Figure({
  title,
  value,
  note,
  warn,
  to,
  search,
  children,
}: {
  title: string;
  value: number | undefined;
  note: string;
  warn?: boolean;
  to: "/nodes" | "/users" | "/routes" | "/keys" | "/settings/server";
  search?: Record<string, string>;
  children?: ReactNode;
}) {
  return (
    <li className="flex bg-surface">
      <Link
        to={to}
        search={(search ?? {}) as never}
        className="relative flex min-h-24 flex-1 flex-col px-4 py-3 -outline-offset-2 hover:bg-canvas"
      >
        <span className="text-12 text-ink-2">{title}</span>
        {value === undefined ? (
          <Skeleton className="my-2 w-12" />
        ) : (
          <>
            <span className="text-[22px] leading-8 font-semibold tracking-[-0.01em] tabular-nums">
              {value.toLocaleString("en")}
            </span>
            <span className={warn ? "text-12 font-medium text-warn" : "text-12 text-ink-3"}>{note}</span>
          </>
        )}
        {children && <span className="absolute top-8 right-4">{children}</span>}
      </Link>
    </li>
  );
}

/** The last day as a sparkline. */
function Spark({ values, label }: { values: readonly number[]; label: string }) {
  const path = outline(values, 56, 24);
  if (!path) return null;
  return (
    <svg viewBox="0 0 56 24" width="56" height="24" role="img" aria-label={label} className="block overflow-visible">
      <path d={`${path} L56 24 L0 24 Z`} fill="var(--up)" opacity="0.35" />
      <path d={path} fill="none" stroke="var(--tick)" strokeWidth="1.5" strokeLinejoin="round" strokeLinecap="round" />
    </svg>
  );
}

function useCourse() {
  const { data: nodes } = useAllNodes();
  const { data: presence } = usePresence();
  return useMemo(() => (nodes && presence ? courseOf(nodes.items, presence) : undefined), [nodes, presence]);
}

const least = (values: readonly number[]) => Math.min(...values);
const most = (values: readonly number[]) => Math.max(...values);

function NodeFigures() {
  const { data } = useAllNodes();
  const now = useNow();
  const course = useCourse();
  const joined = data?.items.filter((node) => now - Date.parse(node.createdAt) < 864e5).length ?? 0;
  const online = data?.items.filter((node) => node.online).length;
  return (
    <>
      <Figure
        title={t.nodes}
        value={data?.items.length}
        note={joined > 0 ? t.joined(joined) : t.joinedNone}
        to="/nodes"
      />
      <Figure
        title={t.online}
        value={online}
        note={t.offline((data?.items.length ?? 0) - (online ?? 0))}
        to="/nodes"
        search={{ tab: "online" }}
      >
        {course && <Spark values={course.online} label={t.onlineRange(least(course.online), most(course.online))} />}
      </Figure>
    </>
  );
}

function UserFigure() {
  const { data: nodes } = useAllNodes();
  const { data: users } = useUsers();
  const now = useNow();
  const course = useCourse();
  const active = useMemo(() => {
    if (!nodes || !users) return undefined;
    const of = holdingsOf(nodes.items);
    return users.items.filter((user) => isActive(of(user), now)).length;
  }, [nodes, users, now]);
  return (
    <Figure
      title={t.users}
      value={active}
      note={t.ofUsers(users?.items.length ?? 0)}
      to="/users"
      search={{ tab: "active" }}
    >
      {course && <Spark values={course.users} label={t.usersRange(least(course.users), most(course.users))} />}
    </Figure>
  );
}

function RouteFigure() {
  const { data } = useAllNodes();
  const waiting = data?.items.reduce((sum, node) => sum + waitingRoutes(node).length, 0) ?? 0;
  return (
    <Figure
      title={t.routes}
      value={data && routesInService(data.items)}
      note={waiting > 0 ? t.waiting(waiting) : t.waitingNone}
      warn={waiting > 0}
      to="/routes"
    />
  );
}

function KeyFigure() {
  const { data } = useQuery(preAuthKeysQuery);
  const now = useNow();
  const { usable, ending } = usableKeys(data?.items ?? [], now);
  return (
    <Figure
      title={t.keys}
      value={data && usable}
      note={ending > 0 ? t.ending(ending) : t.endingNone}
      to="/keys"
      search={{ tab: "usable" }}
    />
  );
}

function RelayFigure() {
  const { data } = useQuery(serverQuery);
  const relays = data?.relays ?? [];
  const median = nearest(relays);
  const note =
    relays.length === 0
      ? t.noRelay
      : median === null
        ? t.unmeasured(relays.length)
        : t.median(relays.length, millisecondWords(median));
  return (
    <Figure
      title={t.relays}
      value={data && relays.filter(isHealthy).length}
      note={note}
      warn={data !== undefined && (relays.length === 0 || (median !== null && !relays.every(isHealthy)))}
      to="/settings/server"
    />
  );
}
