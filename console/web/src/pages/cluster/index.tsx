/** All replicas, the database and its standbys, and what is wrong with them. */
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { type Cluster, type ClusterReplica, clusterQuery, useCan } from "@/api";
import { tableCell as cell, Fact, ScrollingTable, SettingsPage } from "@/pages/settings";
import { printable, text } from "@/text";
import { clusterPage as t } from "@/text/settings";
import { Badge, ErrorState, LoadingLines, Mark, NotAllowed, Section, Time, Warning } from "@/ui";
import { Relays } from "./Relays";
import { bytes, duration, marks, replication, sentence } from "./words";

export function ClusterPage() {
  const can = useCan();
  const { data, error, refetch } = useQuery({ ...clusterQuery, enabled: can("service:read") });
  return (
    <SettingsPage title={text.settings.cluster}>
      {!can("service:read") ? (
        <NotAllowed scope="service:read" />
      ) : data ? (
        <div className="space-y-5">
          <Problems cluster={data} />
          <Replicas cluster={data} />
          <Relays />
          <Database cluster={data} />
          {data.database.engine === "postgres" && <Standbys cluster={data} />}
        </div>
      ) : error ? (
        <ErrorState title={text.settings.cluster} error={error} onRetry={() => void refetch()} />
      ) : (
        <LoadingLines widths={["w-56", "w-72", "w-48", "w-64"]} className="space-y-5" />
      )}
    </SettingsPage>
  );
}

function Problems({ cluster: { problems, notes } }: { cluster: Cluster }) {
  return (
    <div className="space-y-2" role="status" aria-label={t.problems}>
      {problems.map((problem) => (
        <Warning key={problem}>{sentence(printable(problem))}</Warning>
      ))}
      {problems.length === 0 && (
        <p className="flex items-baseline gap-2 font-medium">
          <Mark state="on" />
          {t.fine}
        </p>
      )}
      {notes.map((note) => (
        <p key={note} className="text-ink-2">
          {sentence(printable(note))}
        </p>
      ))}
    </div>
  );
}

function Replicas({ cluster: { replicas, replica: own } }: { cluster: Cluster }) {
  const { name, version, nodes, revision, lag, address, started, report } = t.replica;
  return (
    <Section title={t.replicas} note={replicas.length}>
      <ScrollingTable label={t.replicas} titles={[name, version, nodes, revision, lag, address, started, report]}>
        {replicas.map((replica) => (
          <tr key={replica.id}>
            <th scope="row" className={`${cell} text-left font-normal whitespace-nowrap`}>
              <ReplicaName replica={replica} own={replica.id === own} />
            </th>
            <Cell>{printable(replica.version)}</Cell>
            <Cell>{gone(replica) ? "" : text.common.count(replica.nodes)}</Cell>
            <Cell>{replica.revision}</Cell>
            <Cell>{gone(replica) ? "" : replica.lagMillis > 0 ? t.behind(duration(replica.lagMillis)) : t.noLag}</Cell>
            <Cell>{printable(replica.url)}</Cell>
            <Cell>{replica.startedAt && <Time at={replica.startedAt} />}</Cell>
            <Cell>
              <Time at={replica.reportedAt} />
            </Cell>
          </tr>
        ))}
      </ScrollingTable>
    </Section>
  );
}

const gone = ({ state }: ClusterReplica) => state === "stopped" || state === "missing";

function ReplicaName({ replica, own }: { replica: ClusterReplica; own: boolean }) {
  return (
    <span className="flex items-baseline gap-2">
      <Mark state={marks[replica.state]} />
      <span className="font-medium">{printable(replica.name)}</span>
      <span className={replica.state === "missing" ? "text-bad" : "text-ink-2"}>{t.states[replica.state]}</span>
      {own && <Badge>{t.thisOne}</Badge>}
    </span>
  );
}

const Cell = ({ children }: { children: ReactNode }) => (
  <td className={`${cell} whitespace-nowrap tabular-nums`}>{children}</td>
);

function Database({ cluster: { database: d } }: { cluster: Cluster }) {
  const postgres = d.engine === "postgres";
  return (
    <Section title={t.database}>
      <dl className="grid grid-cols-[220px_minmax(0,1fr)] gap-x-4 gap-y-2.5 p-4 max-md:grid-cols-1 max-md:gap-y-0.5">
        <Fact label={t.labels.engine}>
          {t.engines[d.engine]} {printable(d.version)}
        </Fact>
        <Fact label={postgres ? t.labels.host : t.labels.file}>
          <span className="font-mono text-12 break-all">{printable(d.host)}</span>
        </Fact>
        {postgres && (
          <>
            <Fact label={t.labels.role}>{t.roles[d.role]}</Fact>
            {d.timeline !== null && <Fact label={t.labels.timeline}>{d.timeline}</Fact>}
            <Fact label={t.labels.syncCommit}>{printable(d.synchronousCommit)}</Fact>
            <Fact label={t.labels.syncNames}>{printable(d.synchronousStandbyNames) || t.unset}</Fact>
          </>
        )}
      </dl>
      {!postgres && <p className="px-4 pb-4 text-ink-2">{t.single}</p>}
    </Section>
  );
}

function Standbys({ cluster: { database: d } }: { cluster: Cluster }) {
  const { name, state, sync, lag, address } = t.standby;
  return (
    <Section title={t.standbys} note={d.standbysVisible ? d.standbys.length : undefined}>
      {d.standbys.length === 0 ? (
        <p className="p-4 text-ink-2">{d.standbysVisible ? t.noStandbys : t.hidden}</p>
      ) : (
        <ScrollingTable label={t.standbys} titles={[name, state, sync, lag, address]}>
          {d.standbys.map((standby) => (
            <tr key={`${standby.name} ${standby.address}`}>
              <th scope="row" className={`${cell} text-left font-medium whitespace-nowrap`}>
                {printable(standby.name)}
              </th>
              <Cell>{printable(standby.state)}</Cell>
              <Cell>{printable(replication(standby.sync))}</Cell>
              <Cell>
                {bytes(standby.lagBytes)}
                {standby.lagMillis > 0 && `, ${duration(standby.lagMillis)}`}
              </Cell>
              <Cell>{printable(standby.address)}</Cell>
            </tr>
          ))}
        </ScrollingTable>
      )}
    </Section>
  );
}
