/**
 * Requests that wait for approval: devices that join without a key, SSH sessions whose rule requires it, and nodes and
 * users without access. Also suspensions that are held until somebody decides.
 */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Hash, Inbox, SquareTerminal } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { loginsQuery, type PendingLogin, type PendingSSH, sshQuery, useCan, useSession } from "@/api";
import { NodeActionsProvider, OsIcon, systemName } from "@/nodes";
import { useActions } from "@/shell/actions";
import { printable, text } from "@/text";
import { requestWords } from "@/text/requests";
import {
  announce,
  Chips,
  Command,
  Empty,
  ErrorState,
  LoadingLines,
  PageBody,
  PageHead,
  Section,
  Time,
  usePageTitle,
  useShortcuts,
  useWrites,
  WriteButton,
} from "@/ui";
import { UserActionsProvider } from "@/users";
import { HeldSuspensions, UnapprovedNodes, UnapprovedUsers, useUnapproved } from "./Approvals";
import { type RequestAction, RequestDialogs } from "./dialogs";
import { deviceName, oldestFirst, rowShape } from "./facts";

const t = requestWords;
/** Refetches often, because somebody is at the device and waiting. */
const often = { refetchInterval: 3000 };

export function RequestsPage() {
  return (
    <NodeActionsProvider>
      <UserActionsProvider>
        <Requests />
      </UserActionsProvider>
    </NodeActionsProvider>
  );
}

function Requests() {
  const can = useCan();
  const logins = useQuery({ ...loginsQuery, ...often, enabled: can("logins:read") });
  const ssh = useQuery({ ...sshQuery, ...often, enabled: can("ssh:read") });
  const unapproved = useUnapproved();
  const [action, setAction] = useState<RequestAction | null>(null);
  const writes = useWrites("logins:write");
  const byHand = () => setAction({ name: "approve", login: null });
  const offer = writes.offered && writes.now;
  useShortcuts(offer ? [{ keys: "c", label: t.byHand, group: text.shell.groups.page, run: byHand }] : []);
  useActions(offer ? [{ id: "requests.byHand", title: t.byHand, icon: Hash, keys: "c", run: byHand }] : []);

  const waiting =
    (logins.data?.length ?? 0) +
    (ssh.data?.length ?? 0) +
    unapproved.nodes.length +
    unapproved.users.length +
    unapproved.held.length;
  usePageTitle(text.requests.title, waiting > 0 && t.arrived(waiting));
  useArrivals(waiting);
  const loading = logins.isLoading || ssh.isLoading || unapproved.loading;
  const quiet = waiting === 0 && !loading && !logins.error && !ssh.error;
  return (
    <div className="h-full overflow-y-auto">
      <PageHead title={text.requests.title} narrow>
        <WriteButton right="logins:write" icon={Hash} onClick={byHand}>
          {t.byHand}
        </WriteButton>
      </PageHead>
      <PageBody>
        {quiet ? (
          <Quiet />
        ) : (
          <div className="space-y-5">
            <HeldSuspensions users={unapproved.held} />
            <UnapprovedUsers users={unapproved.users} />
            <UnapprovedNodes nodes={unapproved.nodes} />
            {can("logins:read") && (
              <Section title={t.devices.title} note={logins.data?.length}>
                <Content query={logins} failed={t.devices.failed} none={t.devices.none}>
                  <ul aria-label={t.devices.list}>
                    {oldestFirst(logins.data).map((login) => (
                      <Device key={login.code} login={login} onAct={setAction} />
                    ))}
                  </ul>
                </Content>
              </Section>
            )}
            {can("ssh:read") && (
              <Section title={t.ssh.title} note={ssh.data?.length}>
                <Content query={ssh} failed={t.ssh.failed} none={t.ssh.none}>
                  <ul aria-label={t.ssh.list}>
                    {oldestFirst(ssh.data).map((session) => (
                      <Session key={session.code} waiting={session} onAct={setAction} />
                    ))}
                  </ul>
                </Content>
              </Section>
            )}
          </div>
        )}
      </PageBody>
      {action && <RequestDialogs action={action} onClose={() => setAction((now) => (now === action ? null : now))} />}
    </div>
  );
}

/** Announces when more requests are waiting than before. */
function useArrivals(waiting: number) {
  const before = useRef(waiting);
  useEffect(() => {
    if (waiting > before.current) announce(t.arrived(waiting));
    before.current = waiting;
  }, [waiting]);
}

function Content({
  query,
  failed,
  none,
  children,
}: {
  query: { data?: readonly unknown[]; error: Error | null; refetch(): unknown };
  failed: string;
  none: string;
  children: ReactNode;
}) {
  if (query.error && !query.data)
    return <ErrorState title={failed} error={query.error} onRetry={() => void query.refetch()} />;
  if (!query.data) return <LoadingLines widths={["w-64", "w-48"]} className="space-y-4 p-4" />;
  if (query.data.length === 0) return <p className="px-4 py-4 text-ink-2">{none}</p>;
  return children;
}

function Quiet() {
  const { coordinator } = useSession();
  const can = useCan();
  return (
    <>
      <Empty icon={Inbox} title={t.emptyTitle}>
        {t.emptyBody}
      </Empty>
      <div className="mx-auto -mt-6 grid max-w-[760px] grid-cols-2 gap-5 max-md:grid-cols-1">
        {can("logins:read") && (
          <Section title={t.devices.title}>
            <div className="space-y-3 p-4 text-ink-2">
              <p>{t.devices.teach}</p>
              <Command value={`sudo tailscale up --login-server=${coordinator.url}`} what={t.devices.command} />
            </div>
          </Section>
        )}
        {can("ssh:read") && (
          <Section title={t.ssh.title}>
            <div className="space-y-3 p-4 text-ink-2">
              <p>{t.ssh.teach}</p>
              {can("policy:read") && (
                <Link
                  to="/policy"
                  className="inline-flex min-h-6 items-center font-medium text-accent-ink hover:underline"
                >
                  {t.ssh.openPolicy}
                </Link>
              )}
            </div>
          </Section>
        )}
      </div>
    </>
  );
}

function Device({ login, onAct }: { login: PendingLogin; onAct(action: RequestAction): void }) {
  const name = deviceName(login);
  return (
    <li className={rowShape}>
      <div className="flex min-w-0 flex-1 items-start gap-3">
        <span className="grid size-8 shrink-0 place-items-center rounded-full bg-chip">
          <OsIcon os={login.os} />
        </span>
        <div className="min-w-0">
          <div className="truncate font-medium">{name}</div>
          <div className="flex flex-wrap gap-x-3 text-12 text-ink-2">
            <span className="font-mono text-ink">{login.code}</span>
            {login.os && <span>{printable(systemName(login.os), 40)}</span>}
            <span className="font-mono">{printable(login.address, 45)}</span>
            <Time at={login.since} />
          </div>
          {login.tags.length > 0 && (
            <div className="mt-1 flex flex-wrap items-center gap-1 text-12 text-ink-2">
              <span className="mr-1">{t.devices.wants}</span>
              {login.tags.map((tag) => (
                <Chips key={tag} tags={[tag]} />
              ))}
            </div>
          )}
        </div>
      </div>
      <Answers
        right="logins:write"
        yes={{ label: t.devices.letIn, name: t.devices.letInName(name), run: () => onAct({ name: "approve", login }) }}
        no={{ name: t.devices.turnAwayName(name), run: () => onAct({ name: "reject", login }) }}
      />
    </li>
  );
}

function Session({ waiting, onAct }: { waiting: PendingSSH; onAct(action: RequestAction): void }) {
  const { sourceId, sourceName, sourceUser, targetId, targetName, sshUser } = waiting.session;
  const from = printable(sourceName, 60);
  const to = printable(targetName, 60);
  return (
    <li className={rowShape}>
      <div className="flex min-w-0 flex-1 items-start gap-3">
        <span className="grid size-8 shrink-0 place-items-center rounded-full bg-chip text-ink-3">
          <SquareTerminal className="size-4" aria-hidden />
        </span>
        <div className="min-w-0">
          <div className="flex flex-wrap items-baseline gap-x-1.5">
            <NodeName id={sourceId} name={from} />
            <span className="text-ink-3" aria-hidden>
              →
            </span>
            <NodeName id={targetId} name={to} />
            <span className="text-ink-2">{t.ssh.as(printable(sshUser, 60))}</span>
          </div>
          <div className="flex flex-wrap gap-x-3 text-12 text-ink-2">
            <span className="font-mono text-ink">{waiting.code}</span>
            <span>{sourceUser === "tagged-devices" ? t.ssh.tagged : t.ssh.by(printable(sourceUser, 60))}</span>
            <Time at={waiting.since} />
          </div>
        </div>
      </div>
      <Answers
        right="ssh:write"
        yes={{
          label: t.ssh.approve,
          name: t.ssh.approveName(from, to),
          run: () => onAct({ name: "approveSSH", waiting }),
        }}
        no={{ name: t.ssh.rejectName(from, to), run: () => onAct({ name: "rejectSSH", waiting }) }}
      />
    </li>
  );
}

function NodeName({ id, name }: { id: string; name: string }) {
  const can = useCan();
  if (!can("nodes:read")) return <span className="font-medium">{name}</span>;
  return (
    <Link
      to="/nodes/$id"
      params={{ id }}
      className="inline-flex min-h-6 min-w-0 items-center font-medium break-all hover:underline"
    >
      {name}
    </Link>
  );
}

function Answers({
  right,
  yes,
  no,
}: {
  right: "logins:write" | "ssh:write";
  yes: { label: string; name: string; run(): void };
  no: { name: string; run(): void };
}) {
  return (
    <div className="flex shrink-0 gap-2 max-md:[&>button]:h-11 max-sm:justify-end">
      <WriteButton right={right} aria-label={no.name} onClick={no.run}>
        {t.devices.turnAway}
      </WriteButton>
      <WriteButton right={right} look="primary" aria-label={yes.name} onClick={yes.run}>
        {yes.label}
      </WriteButton>
    </div>
  );
}
