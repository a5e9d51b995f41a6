import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { clsx } from "clsx";
import { CircleAlert, CircleCheck, Info, TriangleAlert } from "lucide-react";
import { useCallback, useMemo, useState } from "react";
import {
  apiKeysQuery,
  loginsQuery,
  serverQuery,
  sshQuery,
  useAllNodes,
  useCan,
  usePolicy,
  usePresence,
  useSession,
  useUsers,
} from "@/api";
import { text } from "@/text";
import { overviewWords } from "@/text/overview";
import { Button, Delayed, relative, Section, Skeleton, useNow } from "@/ui";
import { type AttentionLine, attentionLines } from "./attention";

const t = overviewWords.attention;
const most = 8;

/** What needs attention, each with a way to deal with it. */
export function Attention() {
  const { lines, known, checkedAt } = useAttention();
  const [all, setAll] = useState(false);
  const now = useNow();
  const shown = all ? lines : lines.slice(0, most);
  return (
    <Section title={t.title} note={lines.length > 0 ? lines.length : undefined}>
      {!known ? (
        <Delayed>
          <Waiting />
        </Delayed>
      ) : lines.length === 0 ? (
        <div className="flex items-center gap-3 px-4 py-4">
          <CircleCheck className="size-4 shrink-0 text-ok" aria-hidden />
          <p>
            <span className="font-medium">{t.emptyTitle}</span>{" "}
            <span className="text-ink-2">{t.checked(relative(new Date(checkedAt).toISOString(), now))}</span>
          </p>
        </div>
      ) : (
        <ul>
          {shown.map((line) => (
            <Line key={line.id} line={line} />
          ))}
          {lines.length > shown.length && (
            <li className="px-2 py-1">
              <Button look="ghost" onClick={() => setAll(true)}>
                {t.more(lines.length - shown.length)}
              </Button>
            </li>
          )}
        </ul>
      )}
    </Section>
  );
}

const marks = {
  bad: { icon: CircleAlert, look: "text-bad" },
  warn: { icon: TriangleAlert, look: "text-warn" },
  info: { icon: Info, look: "text-ink-3" },
};

function Line({ line }: { line: AttentionLine }) {
  const { icon: Icon, look } = marks[line.tone];
  return (
    <li className="flex min-h-10 items-center gap-3 border-b border-hair px-4 py-1 last:border-b-0">
      <Icon className={clsx("size-4 shrink-0", look)} aria-hidden />
      <p className="min-w-0 flex-1 break-words">
        <span className="font-medium">{line.subject}</span>
        <span className="text-ink-2">
          {line.rest.startsWith(":") ? "" : " "}
          {line.rest}
        </span>
      </p>
      <Link
        to={line.to}
        search={(line.search ?? {}) as never}
        aria-label={`${line.verb}: ${line.subject}`}
        className="-mr-2 inline-flex h-8 shrink-0 items-center rounded-md px-2 font-medium text-accent-ink hover:bg-accent-soft"
      >
        {line.verb}
      </Link>
    </li>
  );
}

const Waiting = () => (
  <div role="status" aria-label={text.common.loading}>
    {["w-72", "w-56", "w-64"].map((width) => (
      <div key={width} className="flex h-11 items-center gap-3 border-b border-hair px-4 last:border-b-0">
        <Skeleton className="size-4 rounded-full" />
        <Skeleton className={width} />
        <Skeleton className="ml-auto w-12" />
      </div>
    ))}
  </div>
);

function useAttention() {
  const can = useCan();
  const now = useNow();
  const { key, coordinator, console: own } = useSession();
  const nodes = useAllNodes();
  const users = useUsers();
  const presence = usePresence();
  const policy = usePolicy();
  const server = useQuery({ ...serverQuery, enabled: can("service:read") });
  const logins = useQuery({ ...loginsQuery, enabled: can("logins:read") });
  const ssh = useQuery({ ...sshQuery, enabled: can("ssh:read") });
  const apiKeys = useQuery({ ...apiKeysQuery, enabled: can("apikeys:read") });
  const words = useCallback((at: string) => relative(at, now), [now]);
  const lines = useMemo(
    () =>
      attentionLines({
        now,
        nodes: nodes.data?.items,
        users: users.data?.items,
        presence: presence.data,
        logins: logins.data,
        ssh: ssh.data,
        policy: policy.data?.policy,
        server: server.data,
        serverFailed: server.isError && !server.data,
        apiKeys: apiKeys.data?.items,
        session: { key, server: coordinator.productVersion, console: own.version },
        relative: words,
        may: can,
      }),
    [
      now,
      nodes.data,
      users.data,
      presence.data,
      logins.data,
      ssh.data,
      policy.data,
      server,
      apiKeys.data,
      can,
      key,
      coordinator,
      own,
      words,
    ],
  );
  const known = !nodes.isLoading && !server.isLoading && !logins.isLoading;
  return { lines, known, checkedAt: Math.max(server.dataUpdatedAt, logins.dataUpdatedAt, nodes.dataUpdatedAt) };
}
