import { clsx } from "clsx";
import type { ApiKey } from "@/api";
import { compareText, printable } from "@/text";
import { apiKeys as t } from "@/text/settings";
import { Badge, type Column, Mark, Time, Tip, textColumn, timeColumn } from "@/ui";
import { apiKeyName, apiKeyState } from "./facts";
import { KeyMenu } from "./KeyMenu";

const soon = 14 * 864e5;

function Expires({ of: key, now }: { of: ApiKey; now: number }) {
  const over = apiKeyState(key, now) === "expired";
  return (
    <Time
      at={key.expiration}
      focusable={false}
      format={over ? t.expired : undefined}
      className={clsx(!over && Date.parse(key.expiration) - now < soon ? "text-warn" : "text-ink-2")}
    />
  );
}

const StateMark = ({ of: key, now }: { of: ApiKey; now: number }) => {
  const state = apiKeyState(key, now);
  return <Mark state={state === "usable" ? "on" : "off"} label={t.state[state]} />;
};

export function apiKeyColumns(session: string, now: number): Column<ApiKey>[] {
  return [
    {
      id: "key",
      title: t.columns.key,
      width: 248,
      fixed: true,
      sort: (a, b) => compareText(a.prefix, b.prefix),
      csv: (key) => apiKeyName(key.prefix),
      cell: (key) => (
        <span className="flex min-w-0 items-center gap-2.5">
          <StateMark of={key} now={now} />
          <span className="truncate font-mono text-12 font-medium">{apiKeyName(key.prefix)}</span>
          {key.prefix === session && <Badge tone="accent">{t.thisSession}</Badge>}
        </span>
      ),
    },
    textColumn({
      id: "comment",
      title: t.columns.comment,
      value: (key) => key.comment,
      cell: (key) => <span className="block truncate">{printable(key.comment)}</span>,
    }),
    textColumn({
      id: "role",
      title: t.columns.role,
      width: 96,
      yields: 2,
      value: (key) => key.role,
      cell: (key) => t.roles[key.role],
    }),
    {
      id: "scopes",
      title: t.columns.scopes,
      width: 152,
      yields: 4,
      csv: (key) => key.scopes.join(" "),
      cell: (key) =>
        key.scopes.length === 0 ? (
          <span className="text-ink-2">{t.allScopes}</span>
        ) : (
          <Tip label={key.scopes.join(", ")}>
            <span className="block truncate font-mono text-12 text-ink-2">{key.scopes.join(", ")}</span>
          </Tip>
        ),
    },
    timeColumn({
      id: "lastUsed",
      title: t.columns.lastUsed,
      width: 104,
      yields: 1,
      at: (key) => key.lastSeen,
    }),
    textColumn({
      id: "from",
      title: t.columns.from,
      width: 132,
      yields: 5,
      value: (key) => key.lastUsedFrom,
      cell: (key) => <span className="block truncate font-mono text-12 text-ink-2">{key.lastUsedFrom}</span>,
    }),
    timeColumn({
      id: "created",
      title: t.columns.created,
      width: 104,
      yields: 3,
      at: (key) => key.createdAt,
    }),
    timeColumn({
      id: "expires",
      title: t.columns.expires,
      width: 128,
      at: (key) => key.expiration,
      cell: (key) => <Expires of={key} now={now} />,
    }),
  ];
}

/** A key on a phone, in two lines. */
export function PhoneRow({ of: key, session, now }: { of: ApiKey; session: string; now: number }) {
  return (
    <div className="flex w-full min-w-0 items-center gap-3">
      <StateMark of={key} now={now} />
      <div className="min-w-0 flex-1">
        <div className="truncate font-mono text-13 font-medium">{apiKeyName(key.prefix)}</div>
        <div className="truncate text-12 text-ink-2">
          {[t.roles[key.role], printable(key.comment)].filter(Boolean).join(" · ")}
        </div>
      </div>
      <div className="flex shrink-0 flex-col items-end text-12">
        {key.prefix === session && <Badge tone="accent">{t.thisSession}</Badge>}
        <Expires of={key} now={now} />
      </div>
      <KeyMenu of={key} />
    </div>
  );
}
