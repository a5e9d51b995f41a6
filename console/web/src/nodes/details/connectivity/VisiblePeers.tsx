import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import { RuleLines } from "@/access";
import { type Node, type NodeHost, useHosts } from "@/api";
import { oneOf, useSearchState, useTyped } from "@/router/search";
import { printable } from "@/text";
import { connectivity } from "@/text/connectivity";
import { Badge, Choices, ErrorState, Input, LoadingLines, type Tone } from "@/ui";
import { byName } from "../../facts";
import { NodeMark } from "../../marks";
import { relayName, Section, SmallButton } from "../parts";
import { type Chance, type Direct, directBetween } from "./direct";
import { useAllReasons, usePeers } from "./usePeers";
import type { Maps, Reason, VisiblePeer } from "./visible";

const t = connectivity.peers;
const pageSize = 25;
const tones: Record<Chance, Tone> = { likely: "ok", unlikely: "warn", unknown: "plain" };

interface Row extends VisiblePeer {
  host: NodeHost | undefined;
  direct: Direct;
}

/** The peers in the network map of a node, why each is there, and how likely a direct connection to it is. */
export function VisiblePeers({ node, host }: { node: Node; host: NodeHost }) {
  const { found, unchecked, error, retry } = usePeers(node);
  const hosts = useHosts(true);
  const rows = useMemo(
    () =>
      hosts.data &&
      found?.peers
        .map((peer): Row => {
          const theirs = hosts.data.get(peer.node.id);
          return { ...peer, host: theirs, direct: directBetween(host, theirs) };
        })
        .sort((a, b) => Number(b.node.online) - Number(a.node.online) || byName(a.node, b.node)),
    [found, hosts.data, host],
  );
  const failed = error ?? (hosts.data ? null : hosts.error);
  return (
    <Section
      title={t.title}
      note={rows && rows.length > 0 && t.summary(rows.length, rows.filter((row) => row.node.online).length)}
    >
      {node.expired ? (
        <p className="text-13 text-ink-2">{t.expired}</p>
      ) : failed ? (
        <ErrorState
          title={t.failed}
          error={failed}
          onRetry={() => {
            retry();
            if (hosts.error) void hosts.refetch();
          }}
        />
      ) : !found || !rows ? (
        <LoadingLines widths={["w-3/4", "w-1/2", "w-2/3"]} className="space-y-3 py-1" />
      ) : rows.length === 0 ? (
        <p className="text-13 text-ink-2">{t.none}</p>
      ) : (
        <Peers node={node} rows={rows} maps={found.maps} home={host.relay?.id} />
      )}
      {rows && unchecked > 0 && <p className="mt-3 text-12 text-ink-2">{t.incomplete(unchecked)}</p>}
    </Section>
  );
}

interface Shown {
  node: Node;
  rows: readonly Row[];
  maps: Maps;
  /** The home relay of the node. */
  home: number | undefined;
}

function Peers({ node, rows, maps, home }: Shown) {
  const [search, setSearch] = useSearchState({ direct: "all", peer: "" });
  const [typed, setTyped] = useTyped(search.peer, (peer) => setSearch({ peer }));
  const [page, setPage] = useState(0);
  const of = (chance: Chance) => rows.filter((row) => row.direct.chance === chance).length;
  const choices = {
    all: t.all(rows.length),
    likely: t.counted(t.chances.likely, of("likely")),
    unlikely: t.counted(t.chances.unlikely, of("unlikely")),
    unknown: t.counted(t.chances.unknown, of("unknown")),
  };
  const chosen = oneOf<keyof typeof choices>(search.direct, choices, "all");
  const name = typed.trim().toLowerCase();
  const found = rows.filter(
    (row) =>
      (chosen === "all" || row.direct.chance === chosen) && (!name || row.node.givenName.toLowerCase().includes(name)),
  );
  const at = Math.min(page, Math.max(0, Math.ceil(found.length / pageSize) - 1));
  const shown = found.slice(at * pageSize, (at + 1) * pageSize);
  return (
    <>
      <p className="mb-3 max-w-[90ch] text-12 text-ink-2">
        {t.note} {t.relayNote}
      </p>
      <div className="mb-2 flex flex-wrap items-end gap-3">
        <Choices<keyof typeof choices>
          label={t.choices}
          choices={choices}
          value={chosen}
          onChange={(direct) => {
            setPage(0);
            setSearch({ direct });
          }}
        />
        <Input
          aria-label={t.filter}
          placeholder={t.filter}
          value={typed}
          onChange={(event) => {
            setPage(0);
            setTyped(event.target.value);
          }}
          className="w-56! max-w-full"
        />
      </div>
      {shown.length === 0 ? (
        <p role="status" className="py-3 text-13 text-ink-2">
          {t.noMatch}
        </p>
      ) : (
        <PeerTable node={node} rows={shown} maps={maps} home={home} />
      )}
      {found.length > pageSize && (
        <nav aria-label={t.pages} className="mt-3 flex items-center gap-3 text-12 text-ink-2">
          <SmallButton disabled={at === 0} onClick={() => setPage(at - 1)}>
            {t.previous}
          </SmallButton>
          <span role="status" className="tabular-nums">
            {t.range(at * pageSize + 1, at * pageSize + shown.length, found.length)}
          </span>
          <SmallButton disabled={(at + 1) * pageSize >= found.length} onClick={() => setPage(at + 1)}>
            {t.next}
          </SmallButton>
        </nav>
      )}
    </>
  );
}

const columns = "@min-[760px]:grid-cols-[minmax(0,4fr)_minmax(0,3fr)_minmax(0,6fr)_minmax(0,5fr)]";

function PeerTable({ node, rows, maps, home }: Shown) {
  const complete = useAllReasons(node, rows, maps);
  return (
    <div>
      <div
        aria-hidden
        className={`hidden gap-x-4 border-b border-line py-1.5 text-12 font-medium text-ink-2 @min-[760px]:grid ${columns}`}
      >
        {Object.values(t.columns).map((title) => (
          <span key={title}>{title}</span>
        ))}
      </div>
      <ul aria-label={t.title}>
        {complete.map((row) => (
          <li
            key={row.node.id}
            className={`grid grid-cols-1 gap-x-4 gap-y-1.5 border-b border-hair py-2.5 text-13 last:border-0 @min-[760px]:py-2 ${columns}`}
          >
            <span className="flex min-h-6 min-w-0 items-center gap-2 self-start">
              <NodeMark node={row.node} />
              <Link to="/nodes/$id" params={{ id: row.node.id }} className="truncate font-medium hover:underline">
                {printable(row.node.givenName)}
              </Link>
            </span>
            <Cell label={t.columns.relay}>
              {row.host?.relay ? printable(relayName(row.host.relay)) : t.noRelay}
              {row.host?.relay && home !== undefined && (
                <span className="block text-12 text-ink-2">
                  {row.host.relay.id === home ? t.sameRelay : t.otherRelay}
                </span>
              )}
            </Cell>
            <Cell label={t.columns.direct}>
              <Badge tone={tones[row.direct.chance]}>{t.directIs[row.direct.chance]}</Badge>
              <span className="mt-0.5 block text-12 text-ink-2">{t.why[row.direct.why](row.direct.who)}</span>
            </Cell>
            <Cell label={t.columns.why}>
              {row.reasons.map((reason) => (
                <span key={reason.way + reason.route} className="flex min-h-6 flex-wrap items-center gap-x-2 text-12">
                  {reasonWords(reason)}
                  {reason.lines.length > 0 && <span className="text-ink-2">{t.line}</span>}
                  <RuleLines lines={reason.lines} most={3} />
                </span>
              ))}
            </Cell>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** A value, with its label beside it where there is no room for columns. */
const Cell = ({ label, children }: { label: string; children: ReactNode }) => (
  <div className="grid min-w-0 grid-cols-[112px_minmax(0,1fr)] gap-x-3 @min-[760px]:block">
    <span className="text-12 leading-5 text-ink-2 @min-[760px]:sr-only">{label}</span>
    <div className="min-w-0 break-words">{children}</div>
  </div>
);

function reasonWords({ way, route }: Reason): string {
  if (route === undefined) return t.reasons[way];
  if (route === "") return way === "out" ? t.reasons.outInternet : t.reasons.inInternet;
  return way === "out" ? t.reasons.outRoute(route) : t.reasons.inRoute(route);
}
