import { useQuery, useQueryClient } from "@tanstack/react-query";
import { ArrowRightFromLine, RotateCcw, Trash2 } from "lucide-react";
import { type ReactNode, useState } from "react";
import { api, keys, newRequestName, type Relay, relaysQuery, useSession } from "@/api";
import { tableCell as cell, ScrollingTable } from "@/pages/settings";
import { printable, text } from "@/text";
import { clusterPage as t } from "@/text/settings";
import {
  ApiCall,
  Confirm,
  ErrorState,
  Mark,
  MenuItem,
  MenuLine,
  RowMenu,
  Section,
  Time,
  useStatus,
  useWrites,
} from "@/ui";
import { bytes, duration, relayMark, sentence } from "./words";

type Action = { name: "drain" | "remove"; relay: Relay };

/** Relays that run as processes of their own, whether they can be reached, and what they do. */
export function Relays() {
  const { data, error, refetch } = useQuery(relaysQuery);
  const [action, setAction] = useState<Action | null>(null);
  const { offered } = useWrites("service:write");
  const close = () => setAction((now) => (now === action ? null : now));
  const { name, region, reachable, clients, traffic, version, address, report, actions } = t.relay;
  const titles = [name, region, reachable, clients, traffic, version, address, report];
  return (
    <Section title={t.relays} note={data?.length}>
      {error && !data ? (
        <ErrorState title={t.relaysFailed} error={error} onRetry={() => void refetch()} />
      ) : data?.length === 0 ? (
        <p className="p-4 text-ink-2">
          {t.noRelays} <code className="font-mono text-12 break-all">{t.addRelay}</code>
        </p>
      ) : (
        <ScrollingTable label={t.relays} titles={offered ? [...titles, actions] : titles}>
          {data?.map((relay) => (
            <Row key={relay.id} relay={relay} onAct={setAction} />
          ))}
        </ScrollingTable>
      )}
      {action?.name === "drain" && <Drain relay={action.relay} all={data ?? []} onClose={close} />}
      {action?.name === "remove" && <Remove relay={action.relay} onClose={close} />}
    </Section>
  );
}

const Cell = ({ children }: { children: ReactNode }) => (
  <td className={`${cell} whitespace-nowrap tabular-nums`}>{children}</td>
);

function Row({ relay, onAct }: { relay: Relay; onAct(action: Action): void }) {
  const { offered } = useWrites("service:write");
  return (
    <tr>
      <th scope="row" className={`${cell} text-left font-normal whitespace-nowrap`}>
        <span className="flex items-baseline gap-2">
          <Mark state={relayMark(relay)} />
          <span className="font-medium">{printable(relay.name)}</span>
          <span className={relay.state === "offline" ? "text-bad" : "text-ink-2"}>{t.relayStates[relay.state]}</span>
        </span>
      </th>
      <Cell>{printable(relay.region.name)}</Cell>
      <td className={`${cell} min-w-60`}>
        <Reachable relay={relay} />
      </td>
      <Cell>{text.common.count(relay.clients)}</Cell>
      <Cell>{t.traffic(bytes(Number(relay.bytesReceived)), bytes(Number(relay.bytesSent)))}</Cell>
      <Cell>{printable(relay.version)}</Cell>
      <Cell>{printable(relay.url)}</Cell>
      <Cell>{relay.reportedAt && <Time at={relay.reportedAt} />}</Cell>
      {offered && (
        <td className={`${cell} py-0.5!`}>
          <Actions relay={relay} onAct={onAct} />
        </td>
      )}
    </tr>
  );
}

/** What the last probe found. */
function Reachable({ relay: { probe, url } }: { relay: Relay }) {
  if (!probe) return <span className="text-ink-2">{url && t.unprobed}</span>;
  if (probe.reachable) return probe.milliseconds !== null && t.within(duration(probe.milliseconds));
  return (
    <>
      <p className="text-bad">{t.unreachable}</p>
      {probe.checks
        .filter((check) => !check.passed)
        .map((check) => (
          <p key={check.name} className="text-12 break-words text-ink-2">
            {t.checks[check.name]}: {sentence(printable(check.problem))}
          </p>
        ))}
    </>
  );
}

function Actions({ relay, onAct }: { relay: Relay; onAct(action: Action): void }) {
  const { why } = useWrites("service:write");
  const { key } = useSession();
  const turn = useDrain(relay);
  return (
    <RowMenu name={printable(relay.name)}>
      {relay.state === "draining" ? (
        <MenuItem icon={RotateCcw} why={why} onSelect={() => void turn(false)}>
          {t.drain.stop}
        </MenuItem>
      ) : (
        <MenuItem icon={ArrowRightFromLine} why={why} onSelect={() => onAct({ name: "drain", relay })}>
          {t.drain.start}
        </MenuItem>
      )}
      {key.role === "admin" && (
        <>
          <MenuLine />
          <MenuItem icon={Trash2} danger why={why} onSelect={() => onAct({ name: "remove", relay })}>
            {t.remove.start}
          </MenuItem>
        </>
      )}
    </RowMenu>
  );
}

/** Drains a relay, or offers it to devices again. */
function useDrain(relay: Relay) {
  const client = useQueryClient();
  const status = useStatus();
  const name = printable(relay.name);
  return async (draining: boolean) => {
    try {
      await api.call("post", "/api/v1/relay/{relayId}/drain", {
        params: { relayId: relay.id },
        body: { draining },
        once: newRequestName(),
      });
      status.done(draining ? t.drain.draining(name) : t.drain.active(name));
    } catch (error) {
      status.failed(t.drain.failed(name), error);
    }
    void client.invalidateQueries({ queryKey: keys.relays });
  };
}

function Drain({ relay, all, onClose }: { relay: Relay; all: readonly Relay[]; onClose(): void }) {
  const turn = useDrain(relay);
  const [busy, setBusy] = useState(false);
  const others = all.some((r) => r.id !== relay.id && r.region.id === relay.region.id && r.state === "active");
  const submit = async () => {
    setBusy(true);
    await turn(true);
    onClose();
  };
  return (
    <Confirm
      title={t.drain.title(printable(relay.name))}
      submit={t.drain.start}
      danger={!others}
      busy={busy}
      call={<ApiCall method="post" path={`/api/v1/relay/${relay.id}/drain`} body={{ draining: true }} />}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <p>{t.drain.body}</p>
      {!others && <p className="font-medium text-ink">{t.drain.last}</p>}
    </Confirm>
  );
}

function Remove({ relay, onClose }: { relay: Relay; onClose(): void }) {
  const client = useQueryClient();
  const status = useStatus();
  const [busy, setBusy] = useState(false);
  const name = printable(relay.name);
  const submit = async () => {
    setBusy(true);
    try {
      await api.call("delete", "/api/v1/relay/{relayId}", { params: { relayId: relay.id }, once: newRequestName() });
      status.done(t.remove.done(name));
    } catch (error) {
      status.failed(t.remove.failed(name), error);
    }
    void client.invalidateQueries({ queryKey: keys.relays });
    onClose();
  };
  return (
    <Confirm
      title={t.remove.title(name)}
      submit={t.remove.submit}
      word={relay.state === "active" ? name : undefined}
      busy={busy}
      call={<ApiCall method="delete" path={`/api/v1/relay/${relay.id}`} />}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <p>{t.remove.body}</p>
    </Confirm>
  );
}
