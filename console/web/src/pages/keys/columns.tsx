import { Link } from "@tanstack/react-router";
import type { PreAuthKey } from "@/api";
import { KeyKind, KeyOwner, KeyStateMark, keyName, keyOwnerWords, keyState } from "@/keys";
import { compareText, text } from "@/text";
import { type Column, Time, textColumn, timeColumn } from "@/ui";

const t = text.keys;

export interface KeyFacts {
  /** The number of nodes that joined with each key, by its ID. */
  nodes: ReadonlyMap<string, number>;
  /** The creator of each key, by its ID. */
  creators: ReadonlyMap<string, string> | undefined;
  powerful: readonly string[];
  now: number;
}

export function keyColumns({ nodes, creators, powerful, now }: KeyFacts): Column<PreAuthKey>[] {
  return [
    textColumn({
      id: "key",
      title: t.columns.key,
      fixed: true,
      value: keyName,
      cell: (key) => (
        <span className="flex min-w-0 items-center gap-2.5">
          <KeyStateMark of={key} now={now} words={false} />
          <Link
            to="/keys"
            search={((before: object) => ({ ...before, key: key.id })) as never}
            className="truncate font-mono text-12 font-medium hover:underline"
          >
            {keyName(key)}
          </Link>
        </span>
      ),
    }),
    textColumn({
      id: "description",
      title: t.columns.description,
      width: 200,
      yields: 2,
      value: (key) => key.description,
    }),
    textColumn({
      id: "owner",
      title: t.columns.owner,
      width: 164,
      yields: 1,
      value: keyOwnerWords,
      cell: (key) => <KeyOwner of={key} />,
    }),
    {
      id: "kind",
      title: t.columns.kind,
      width: 176,
      yields: 3,
      sort: (a, b) => Number(a.reusable) - Number(b.reusable) || Number(a.ephemeral) - Number(b.ephemeral),
      csv: (key) =>
        [
          key.reusable ? t.kinds.reusable : t.kinds.once,
          key.ephemeral && t.kinds.ephemeral,
          key.preApproved && t.kinds.preApproved,
        ]
          .filter(Boolean)
          .join(" "),
      cell: (key) => <KeyKind of={key} powerful={powerful} now={now} />,
    },
    {
      id: "uses",
      title: t.columns.uses,
      width: 68,
      yields: 4,
      sort: (a, b) => a.uses - b.uses,
      csv: (key) => String(key.uses),
      cell: (key) => <span className="tabular-nums text-ink-2">{text.common.count(key.uses)}</span>,
    },
    {
      id: "nodes",
      title: t.columns.nodes,
      width: 92,
      yields: 2,
      sort: (a, b) => (nodes.get(a.id) ?? 0) - (nodes.get(b.id) ?? 0),
      csv: (key) => String(nodes.get(key.id) ?? 0),
      cell: (key) => <NodesLink of={key} count={nodes.get(key.id) ?? 0} />,
    },
    textColumn({
      id: "by",
      title: t.columns.by,
      width: 148,
      yields: 6,
      value: (key) => creators?.get(key.id) ?? "",
    }),
    timeColumn({ id: "created", title: t.columns.created, width: 96, yields: 5, at: (key) => key.createdAt }),
    timeColumn({
      id: "expires",
      title: t.columns.expires,
      width: 128,
      yields: 1,
      at: (key) => key.expiration,
      cell: (key) => (
        <Time
          at={key.expiration}
          focusable={false}
          format={keyState(key, now) === "expired" ? t.expired : undefined}
          className="text-ink-2"
        />
      ),
    }),
    {
      id: "state",
      title: t.columns.state,
      width: 96,
      yields: 7,
      sort: (a, b) => compareText(keyState(a, now), keyState(b, now)),
      csv: (key) => t.state[keyState(key, now)],
      cell: (key) => t.state[keyState(key, now)],
    },
    timeColumn({
      id: "lastUsed",
      title: t.columns.lastUsed,
      width: 110,
      yields: 8,
      extra: true,
      at: (key) => key.lastUsed,
    }),
    textColumn({
      id: "id",
      title: t.columns.id,
      width: 72,
      extra: true,
      value: (key) => key.id,
      cell: (key) => <span className="text-ink-2">{key.id}</span>,
    }),
  ];
}

export function NodesLink({ of: key, count }: { of: PreAuthKey; count: number }) {
  if (count === 0) return <span className="text-ink-3">{text.common.none}</span>;
  return (
    <Link
      to="/nodes"
      search={{ q: `key:${keyName(key)}` }}
      aria-label={`${t.nodes(count)}: ${t.showNodes(keyName(key))}`}
      className="text-accent-ink underline-offset-2 hover:underline"
    >
      {t.nodes(count)}
    </Link>
  );
}
