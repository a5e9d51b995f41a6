import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { clsx } from "clsx";
import {
  ChevronRight,
  KeyRound,
  LogIn,
  type LucideIcon,
  Route,
  ScrollText,
  Server,
  ServerCog,
  Users,
} from "lucide-react";
import { type ReactNode, useMemo, useState } from "react";
import { type AuditFilter, auditQuery, type Change, useCan } from "@/api";
import { text } from "@/text";
import { Button, Delayed, Empty, ErrorState, Skeleton, Time } from "@/ui";
import { type EventGroup, groupEvents } from "./group";
import { type EventWords, eventWords, type Lane } from "./words";

export const laneIcons: Record<Lane, LucideIcon> = {
  nodes: Server,
  routes: Route,
  keys: KeyRound,
  users: Users,
  policy: ScrollText,
  server: ServerCog,
  signins: LogIn,
};

/**
 * The latest changes, updated live. Similar changes that happened together are one expandable line. Each line links to
 * the timeline. `limit` counts lines; with `more`, older ones can be loaded.
 */
export function ActivityList({
  filter = {},
  limit = 20,
  more,
}: {
  filter?: AuditFilter;
  limit?: number;
  more?: boolean;
}) {
  const enabled = useCan()("history:read");
  // A line can stand for many changes, so load more changes than lines.
  const query = useInfiniteQuery({ ...auditQuery(filter, Math.min(1000, limit * 5)), enabled });
  const [pages, setPages] = useState(1);
  const groups = useMemo(() => groupEvents(query.data?.pages.flatMap((page) => page.entries) ?? []), [query.data]);
  if (!enabled) return null;
  if (query.error && !query.data)
    return <ErrorState title={text.activity.failed} error={query.error} onRetry={() => void query.refetch()} />;
  if (!query.data) return <Waiting lines={Math.min(limit, 6)} />;
  if (groups.length === 0) return <Empty title={text.activity.none}>{text.activity.noneBody}</Empty>;
  const shown = limit * pages;
  const older = groups.length > shown || query.hasNextPage;
  return (
    <>
      <ul aria-label={text.activity.list} className="divide-y divide-hair">
        {groups.slice(0, shown).map((group) => (
          <GroupLine key={group.entries.at(-1)?.id} group={group} />
        ))}
      </ul>
      {more && older && (
        <Button
          className="mt-3"
          busy={query.isFetchingNextPage}
          onClick={() => {
            setPages(pages + 1);
            if (groups.length <= shown + limit && query.hasNextPage) void query.fetchNextPage();
          }}
        >
          {text.activity.more}
        </Button>
      )}
    </>
  );
}

function GroupLine({ group }: { group: EventGroup }) {
  const [open, setOpen] = useState(false);
  const [first] = group.entries;
  if (group.entries.length === 1) return <Line entry={first} words={group.words} />;
  return (
    <li>
      <Row
        words={group.words}
        at={first.at}
        title={
          <button
            type="button"
            aria-expanded={open}
            onClick={() => setOpen(!open)}
            className="flex min-w-0 items-center gap-1 rounded text-left hover:underline"
          >
            <span className="min-w-0 break-words">{group.words.title}</span>
            <ChevronRight
              className={clsx("size-3.5 shrink-0 text-ink-3 transition-transform duration-100", open && "rotate-90")}
              aria-hidden
            />
          </button>
        }
      />
      {open && (
        <ul className="mb-1 ml-[30px] border-l border-line pl-3">
          {group.entries.slice(0, 50).map((entry) => (
            <Line key={entry.id} entry={entry} words={eventWords(entry)} inner />
          ))}
        </ul>
      )}
    </li>
  );
}

function Line({ entry, words, inner }: { entry: Change; words: EventWords; inner?: boolean }) {
  const title = (
    <Link
      to="/timeline"
      search={{ event: entry.id, at: entry.at } as never}
      className="min-w-0 rounded break-words hover:underline"
    >
      {words.title}
    </Link>
  );
  return (
    <li>
      <Row words={words} at={entry.at} title={title} inner={inner} />
    </li>
  );
}

function Row({ words, at, title, inner }: { words: EventWords; at: string; title: ReactNode; inner?: boolean }) {
  const Icon = laneIcons[words.lane];
  return (
    <div className={clsx("flex items-start gap-3 text-13", inner ? "py-1" : "py-2")}>
      {!inner && (
        <Icon className={clsx("mt-0.5 ml-1 size-3.5 shrink-0", words.ended ? "text-bad" : "text-ink-3")} aria-hidden />
      )}
      <div className="flex min-w-0 flex-1 flex-wrap items-baseline gap-x-2">
        {title}
        {!inner && <span className="text-12 text-ink-3">{text.activity.by(words.actor)}</span>}
      </div>
      <Time at={at} className="shrink-0 text-12 leading-5 text-ink-3 tabular-nums" focusable={false} />
    </div>
  );
}

const Waiting = ({ lines }: { lines: number }) => (
  <Delayed>
    <div className="divide-y divide-hair" aria-hidden>
      {Array.from({ length: lines }, (_, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: all items are identical
        <div key={i} className="flex items-center gap-3 py-3">
          <Skeleton className="ml-1 size-3.5" />
          <Skeleton className="w-2/5" />
          <Skeleton className="ml-auto w-12" />
        </div>
      ))}
    </div>
  </Delayed>
);
