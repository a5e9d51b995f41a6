/** Webhooks: where the server sends events, and the state of each receiver. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Pencil, Plus, RefreshCw, Send, Trash2, Webhook as WebhookIcon } from "lucide-react";
import { useState } from "react";
import { api, keys, newRequestName, useCan, useSession, type Webhook, type WebhookDelivery } from "@/api";
import { useCreate } from "@/list";
import { SettingsPage } from "@/pages/settings";
import { printable, text } from "@/text";
import { webhooksPage as t } from "@/text/settings";
import {
  Badge,
  Button,
  Chips,
  CopyButton,
  Empty,
  ErrorState,
  Fold,
  LoadingLines,
  MenuItem,
  MenuLine,
  NotAllowed,
  RowMenu,
  Switch,
  Time,
  type Tone,
  useStatus,
  useWrites,
  WriteButton,
} from "@/ui";
import { type WebhookAction, WebhookDialogs } from "./dialogs";
import { Failed } from "./Failed";
import { hostOf, stateOf, type WebhookState } from "./facts";
import { webhooksQuery } from "./queries";

const tones: Record<WebhookState, Tone> = { ok: "ok", failing: "bad", disabled: "plain", unused: "plain" };

export function WebhooksPage() {
  const can = useCan();
  const { data, error, refetch } = useQuery({ ...webhooksQuery, enabled: can("webhooks:read") });
  const [action, setAction] = useState<WebhookAction | null>(null);
  const { offered, now: connected } = useWrites("webhooks:write");
  const create = () => setAction({ name: "create" });
  useCreate(offered && connected, {
    id: "webhooks.create",
    label: t.form.create,
    title: t.form.createTitle,
    run: create,
  });
  const button = (
    <WriteButton right="webhooks:write" look="primary" icon={Plus} onClick={create}>
      {t.form.create}
    </WriteButton>
  );
  return (
    <SettingsPage title={text.settings.webhooks} actions={button}>
      {!can("webhooks:read") ? (
        <NotAllowed scope="webhooks:read" />
      ) : data ? (
        data.length === 0 ? (
          <Empty icon={WebhookIcon} title={t.emptyTitle}>
            {t.emptyBody}
          </Empty>
        ) : (
          <div className="space-y-4">
            <p className="text-ink-2">{t.intro}</p>
            {data.map((webhook) => (
              <Card key={webhook.id} webhook={webhook} onAct={setAction} />
            ))}
          </div>
        )
      ) : error ? (
        <ErrorState title={t.failed} error={error} onRetry={() => void refetch()} />
      ) : (
        <LoadingLines widths={["w-72", "w-96", "w-64"]} className="space-y-5" />
      )}
      {action && <WebhookDialogs action={action} onClose={() => setAction((now) => (now === action ? null : now))} />}
    </SettingsPage>
  );
}

/** Whether the key may send tests and resend events, which needs fewer permissions than changing webhooks. */
function useMaySend() {
  const { key } = useSession();
  return key.role !== "read" && (key.scopes.length === 0 || key.scopes.includes("webhooks"));
}

function Card({ webhook, onAct }: { webhook: Webhook; onAct(action: WebhookAction): void }) {
  const { offered, why } = useWrites("webhooks:write");
  const maySend = useMaySend();
  const { turn, test, busy, result } = useCardCalls(webhook);
  const host = hostOf(webhook.url);
  const state = stateOf(webhook);
  const id = `webhook-${webhook.id}`;
  return (
    <section aria-labelledby={id} className="rounded-lg border border-line bg-surface">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2 border-b border-line px-4 py-3">
        <div className="min-w-0 flex-1 basis-60">
          <h2 id={id} className="flex min-w-0 items-center gap-2 text-14 font-semibold">
            <span className="truncate">{host}</span>
            <Badge tone={tones[state]}>{t.states[state]}</Badge>
          </h2>
          {webhook.description && <p className="text-12 break-words text-ink-2">{printable(webhook.description)}</p>}
        </div>
        {maySend && (
          <Button icon={Send} busy={busy} disabled={busy} why={why} onClick={() => void test()}>
            {busy ? t.actions.testing : t.actions.test}
          </Button>
        )}
        {offered && (
          <>
            <Switch label={t.enabled(host)} checked={webhook.enabled} why={why} onChange={(on) => void turn(on)} />
            <RowMenu name={host}>
              <MenuItem icon={Pencil} why={why} onSelect={() => onAct({ name: "edit", webhook })}>
                {t.actions.edit}
              </MenuItem>
              <MenuItem icon={RefreshCw} why={why} onSelect={() => onAct({ name: "rotate", webhook })}>
                {t.actions.rotate}
              </MenuItem>
              <MenuLine />
              <MenuItem icon={Trash2} danger why={why} onSelect={() => onAct({ name: "delete", webhook })}>
                {t.actions.delete}
              </MenuItem>
            </RowMenu>
          </>
        )}
      </div>
      <div className="space-y-3 px-4 py-3">
        {result && <Result of={result} />}
        <Facts webhook={webhook} />
        <Fold title={t.deliveries.title}>
          <Failed webhookId={webhook.id} maySend={maySend} why={why} />
        </Fold>
      </div>
    </section>
  );
}

/** The calls behind the controls of a card. */
function useCardCalls(webhook: Webhook) {
  const client = useQueryClient();
  const status = useStatus();
  const [busy, setBusy] = useState(false);
  const [result, setResult] = useState<WebhookDelivery | null>(null);
  const host = hostOf(webhook.url);
  const params = { webhookId: webhook.id };
  const turn = async (enabled: boolean) => {
    const show = (to: boolean) =>
      client.setQueryData<Webhook[]>(keys.webhooks, (all) =>
        all?.map((each) => (each.id === webhook.id ? { ...each, enabled: to } : each)),
      );
    show(enabled);
    try {
      await api.call("patch", "/api/v1/webhooks/{webhookId}", { params, body: { enabled }, once: newRequestName() });
      status.done(enabled ? t.toggle.on(host) : t.toggle.off(host));
    } catch (error) {
      show(!enabled);
      status.failed(t.toggle.failed(host), error);
    }
    void client.invalidateQueries({ queryKey: keys.webhooks, exact: true });
  };
  const test = async () => {
    setBusy(true);
    setResult(null);
    try {
      setResult((await api.call("post", "/api/v1/webhooks/{webhookId}/test", { params })).data);
    } catch (error) {
      status.failed(t.result.failed, error);
    }
    setBusy(false);
    void client.invalidateQueries({ queryKey: keys.webhooks, exact: true });
  };
  return { turn, test, busy, result };
}

function Result({ of: { delivered, status, millis, problem, reply } }: { of: WebhookDelivery }) {
  return (
    <div
      role="status"
      className={`rounded-md px-3 py-2 text-13 break-words ${delivered ? "bg-ok-soft text-ok" : "bg-bad-soft text-bad"}`}
    >
      <p className="font-medium">{delivered ? t.result.ok(status, millis) : t.result.bad(printable(problem, 500))}</p>
      {reply && <p className="font-mono text-12">{t.result.reply(printable(reply, 500))}</p>}
    </div>
  );
}

function Facts({ webhook: { url, events, delivery, createdAt, id } }: { webhook: Webhook }) {
  return (
    <dl className="grid grid-cols-[112px_minmax(0,1fr)] gap-x-3 gap-y-2 text-13">
      <dt className="text-ink-2">{t.form.url}</dt>
      <dd className="flex min-w-0 items-center gap-1 font-mono text-12">
        <span className="min-w-0 break-all">{printable(url, 2000)}</span>
        <CopyButton value={url} what={t.form.url} className="-my-0.5" />
      </dd>
      <dt className="text-ink-2">{t.facts.events}</dt>
      <dd className="min-w-0">{events.length > 0 ? <Chips tags={events} most={12} /> : t.allEvents}</dd>
      <dt className="text-ink-2">{t.facts.lastSuccess}</dt>
      <dd>{delivery.lastSuccess ? <Time at={delivery.lastSuccess} /> : t.facts.never}</dd>
      {delivery.lastFailure && (
        <>
          <dt className="text-ink-2">{t.facts.lastFailure}</dt>
          <dd className="min-w-0 break-words">
            <Time at={delivery.lastFailure} /> {printable(delivery.lastAnswer, 500)}
            {delivery.failures > 0 && (
              <span className="block text-12 text-bad">{t.facts.failures(delivery.failures)}</span>
            )}
          </dd>
        </>
      )}
      <dt className="text-ink-2">{t.facts.created}</dt>
      <dd>
        <Time at={createdAt} /> <span className="text-ink-3">{`${t.facts.id} ${id}`}</span>
      </dd>
    </dl>
  );
}
