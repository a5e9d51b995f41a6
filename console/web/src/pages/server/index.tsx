/** The server's details, its health, and what to send when something is wrong. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { dnsQuery, type ServerState, serverQuery, useCan, usePolicy, useSession } from "@/api";
import { HealthList } from "@/pages/overview/HealthList";
import { healthLines } from "@/pages/overview/health";
import { tableCell as cell, Fact, ScrollingTable, SettingsPage } from "@/pages/settings";
import { printable, text } from "@/text";
import { serverPage as t } from "@/text/settings";
import { Badge, CopyButton, ErrorState, Fold, LoadingLines, Mark, NotAllowed, Section, Time } from "@/ui";
import { SupportBundle } from "./SupportBundle";

export function ServerPage() {
  const can = useCan();
  const { data, error, refetch } = useQuery({ ...serverQuery, enabled: can("service:read") });
  return (
    <SettingsPage title={text.settings.server}>
      {!can("service:read") ? (
        <NotAllowed scope="service:read" />
      ) : data ? (
        <div className="grid grid-cols-2 items-start gap-5 max-[1100px]:grid-cols-1">
          <div className="min-w-0 space-y-5">
            <Facts server={data} />
            <SupportBundle server={data} />
          </div>
          <div className="min-w-0 space-y-5">
            <Health server={data} />
            <Relays server={data} />
            <Capabilities />
          </div>
        </div>
      ) : error ? (
        <ErrorState title={text.settings.server} error={error} onRetry={() => void refetch()} />
      ) : (
        <LoadingLines widths={["w-56", "w-72", "w-48", "w-64"]} className="space-y-5" />
      )}
    </SettingsPage>
  );
}

function Facts({ server }: { server: ServerState }) {
  const session = useSession();
  const can = useCan();
  const { data: dns } = useQuery({ ...dnsQuery, enabled: can("dns:read") });
  const { data: policy } = usePolicy();
  const { version } = server;
  return (
    <Section title={t.facts}>
      <dl className="grid grid-cols-[168px_minmax(0,1fr)] gap-x-4 gap-y-2.5 p-4 max-md:grid-cols-1 max-md:gap-y-0.5">
        <Fact label={t.labels.url}>
          <span className="flex items-center gap-1">
            <span className="font-mono text-12 break-all">{server.url}</span>
            <CopyButton value={server.url} what={t.copyUrl} />
          </span>
        </Fact>
        <Fact label={t.labels.version}>
          {version.productVersion}
          {/^[0-9a-f]{7,}$/.test(version.commit) && (
            <span className="font-mono text-12 text-ink-2"> {version.commit.slice(0, 8)}</span>
          )}
          <span className="text-ink-2">
            {" "}
            {version.go.version} {version.go.os}/{version.go.arch}
          </span>
        </Fact>
        <Fact label={t.labels.consoleVersion}>{session.console.version}</Fact>
        <Fact label={t.labels.api}>{version.version}</Fact>
        <Fact label={t.labels.database}>{t.databases[server.database]}</Fact>
        <Fact label={t.labels.replicas}>
          <Link to="/settings/cluster" className="text-accent-ink hover:underline">
            {t.replicas(server.replicas.length)}
          </Link>
        </Fact>
        <Fact label={t.labels.started}>
          <Time at={server.startedAt} />
        </Fact>
        {dns && <Fact label={t.labels.base}>{dns.data.baseDomain || text.common.none}</Fact>}
        {policy && (
          <Fact label={t.labels.policy}>
            {policy.policy ? t.policies[policy.policy.source](policy.policy.version) : t.policies.none}
          </Fact>
        )}
      </dl>
    </Section>
  );
}

function Health({ server }: { server: ServerState }) {
  const { coordinator, console: own } = useSession();
  const lines = healthLines(server, { server: coordinator.productVersion, console: own.version });
  return (
    <Section title={t.health}>
      <HealthList lines={lines} />
    </Section>
  );
}

function Relays({ server }: { server: ServerState }) {
  const titles = [t.relay.region, t.relay.state, t.relay.homes, t.relay.latency];
  return (
    <Section title={t.relays} note={server.relays.length}>
      {server.relays.length === 0 ? (
        <p className="p-4 text-warn">{t.noRelays}</p>
      ) : (
        <ScrollingTable label={t.relays} titles={titles}>
          {server.relays.map(({ region, embedded, homes, measured, medianMilliseconds }) => (
            <tr key={region.id}>
              <th scope="row" className={`${cell} w-full text-left font-normal`}>
                <span className="font-medium">{printable(region.name || region.code)}</span>{" "}
                {embedded && <Badge>{t.relay.embedded}</Badge>}
              </th>
              <td className={`${cell} whitespace-nowrap`}>
                <span className="flex items-baseline gap-2">
                  <Mark state={measured > 0 ? "on" : "warn"} />
                  {measured > 0 ? t.relay.reached(measured) : t.relay.unreached}
                </span>
              </td>
              <td className={`${cell} whitespace-nowrap tabular-nums`}>{t.relay.nodes(homes)}</td>
              <td className={`${cell} whitespace-nowrap tabular-nums`}>
                {medianMilliseconds === null ? "" : t.relay.milliseconds(medianMilliseconds.toFixed(1))}
              </td>
            </tr>
          ))}
        </ScrollingTable>
      )}
    </Section>
  );
}

function Capabilities() {
  const { capabilities } = useSession();
  return (
    <Section title={t.capabilities}>
      <div className="px-4 py-2">
        <Fold title={t.operations(capabilities.length)}>
          <ul className="mb-2 grid grid-cols-2 gap-x-4 font-mono text-12 text-ink-2 max-md:grid-cols-1">
            {[...capabilities].sort().map((name) => (
              <li key={name} className="truncate">
                {name}
              </li>
            ))}
          </ul>
        </Fold>
      </div>
    </Section>
  );
}
