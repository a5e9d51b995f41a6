import { useQueryClient } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { useRef, useState } from "react";
import { api, keys, newRequestName, type Webhook } from "@/api";
import { Failure } from "@/keys";
import { text } from "@/text";
import { webhooksPage as t } from "@/text/settings";
import { ApiCall, Button, Confirm, Dialog, Field, Input, SecretReveal, useStatus } from "@/ui";
import { eventsOf, eventsToOffer, hostOf, isEvent, isReceiver, longestDescription } from "./facts";

export type WebhookAction = { name: "create" } | { name: "edit" | "rotate" | "delete"; webhook: Webhook };

export function WebhookDialogs({ action, onClose }: { action: WebhookAction; onClose(): void }) {
  switch (action.name) {
    case "create":
      return <Create onClose={onClose} />;
    case "edit":
      return <Edit webhook={action.webhook} onClose={onClose} />;
    case "rotate":
      return <Rotate webhook={action.webhook} onClose={onClose} />;
    default:
      return <Remove webhook={action.webhook} onClose={onClose} />;
  }
}

interface Form {
  url: string;
  description: string;
  events: string;
}

const problemsOf = ({ url, description, events }: Form) => {
  const unknown = eventsOf(events).find((name) => !isEvent(name));
  return {
    url: isReceiver(url.trim()) ? undefined : t.form.urlBad,
    description:
      description.trim().length > longestDescription ? t.form.descriptionLong(longestDescription) : undefined,
    events: unknown === undefined ? undefined : t.form.eventsBad(unknown),
  };
};

const bodyOf = ({ url, description, events }: Form) => ({
  url: url.trim(),
  description: description.trim(),
  events: eventsOf(events),
});

/** Creates a webhook, and shows its secret once. */
function Create({ onClose }: { onClose(): void }) {
  const client = useQueryClient();
  const [secret, setSecret] = useState<string | null>(null);
  const [once] = useState(newRequestName);
  if (secret !== null) return <Secret value={secret} onClose={onClose} />;
  return (
    <FormDialog
      title={t.form.createTitle}
      submit={t.form.create}
      failed={t.form.createFailed}
      start={{ url: "", description: "", events: "" }}
      call={(body) => ({ method: "post" as const, path: "/api/v1/webhooks", body })}
      send={async (body) => {
        const { data } = await api.call("post", "/api/v1/webhooks", { body, once });
        void client.invalidateQueries({ queryKey: keys.webhooks });
        setSecret(data.secret);
      }}
      onClose={onClose}
    />
  );
}

function Edit({ webhook, onClose }: { webhook: Webhook; onClose(): void }) {
  const client = useQueryClient();
  const status = useStatus();
  const [before] = useState<Form>({
    url: webhook.url,
    description: webhook.description,
    events: webhook.events.join(" "),
  });
  /** The changed fields. The others are not sent, so that what somebody else changes in the meantime is kept. */
  const changeOf = (body: ReturnType<typeof bodyOf>) => {
    const old = bodyOf(before);
    return {
      ...(body.url !== old.url && { url: body.url }),
      ...(body.description !== old.description && { description: body.description }),
      ...(body.events.join() !== old.events.join() && { events: body.events }),
    };
  };
  return (
    <FormDialog
      title={t.form.editTitle}
      submit={t.form.save}
      failed={t.form.saveFailed}
      start={before}
      call={(body) => ({ method: "patch" as const, path: `/api/v1/webhooks/${webhook.id}`, body: changeOf(body) })}
      send={async (body) => {
        const change = changeOf(body);
        if (Object.keys(change).length > 0) {
          await api.call("patch", "/api/v1/webhooks/{webhookId}", {
            params: { webhookId: webhook.id },
            body: change,
            once: newRequestName(),
          });
          void client.invalidateQueries({ queryKey: keys.webhooks });
          status.done(t.form.saved);
        }
        onClose();
      }}
      onClose={onClose}
    />
  );
}

type Body = ReturnType<typeof bodyOf>;

function FormDialog({
  title,
  submit,
  failed,
  start,
  call,
  send,
  onClose,
}: {
  title: string;
  submit: string;
  failed: string;
  start: Form;
  call(body: Body): Parameters<typeof ApiCall>[0];
  send(body: Body): Promise<void>;
  onClose(): void;
}) {
  const [form, setForm] = useState(start);
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const set = (change: Partial<Form>) => setForm((before) => ({ ...before, ...change }));
  const problems = problemsOf(form);
  const shown = tried ? problems : { ...problems, url: undefined, events: undefined };
  const go = async () => {
    setTried(true);
    if (busy || Object.values(problems).some(Boolean)) return;
    setBusy(true);
    setError(null);
    try {
      await send(bodyOf(form));
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={title}
      sticky={busy} // the new secret is shown only here
      onClose={onClose}
      onSubmit={() => void go()}
      footer={
        <>
          <ApiCall {...call(bodyOf(form))} />
          <Button disabled={busy} onClick={onClose}>
            {text.common.cancel}
          </Button>
          <Button type="submit" look="primary" busy={busy} disabled={busy}>
            {submit}
          </Button>
        </>
      }
    >
      <Field label={t.form.url} hint={t.form.urlHint} error={shown.url}>
        {(control) => (
          <Input
            {...control}
            mono
            type="url"
            value={form.url}
            maxLength={2000}
            placeholder="https://receiver.example.com/mesh"
            onChange={(event) => set({ url: event.target.value })}
            autoFocus
          />
        )}
      </Field>
      <Field label={t.form.description} error={shown.description}>
        {(control) => (
          <Input {...control} value={form.description} onChange={(event) => set({ description: event.target.value })} />
        )}
      </Field>
      <EventsField value={form.events} onChange={(events) => set({ events })} error={shown.events} />
      {error !== null && <Failure what={failed} error={error} />}
    </Dialog>
  );
}

/** A field for event names that offers the common ones. */
function EventsField({ value, onChange, error }: { value: string; onChange(typed: string): void; error?: string }) {
  const input = useRef<HTMLInputElement>(null);
  const chosen = eventsOf(value);
  return (
    <Field label={t.form.events} hint={t.form.eventsHint} error={error}>
      {(control) => (
        <>
          <Input
            {...control}
            ref={input}
            mono
            value={value}
            placeholder="node.* policyUpdate"
            onChange={(event) => onChange(event.target.value)}
          />
          {/* biome-ignore lint/a11y/useSemanticElements: a fieldset would name a form, this names a row of buttons */}
          <div role="group" aria-label={t.form.offered} className="flex flex-wrap gap-1">
            {eventsToOffer(chosen).map((name) => (
              <button
                key={name}
                type="button"
                onClick={() => {
                  const kept = name.endsWith(".*")
                    ? chosen.filter((each) => !each.startsWith(name.slice(0, -1)))
                    : chosen;
                  onChange(`${[...kept, name].join(" ")} `);
                  input.current?.focus();
                }}
                className="inline-flex h-6 items-center gap-1 rounded border border-line-strong px-1.5 font-mono text-11 text-ink-2 hover:bg-sunken hover:text-ink max-md:h-8"
              >
                <Plus className="size-3" aria-hidden />
                {name}
              </button>
            ))}
          </div>
        </>
      )}
    </Field>
  );
}

function Secret({ value, onClose }: { value: string; onClose(): void }) {
  return (
    <SecretReveal title={t.secret.title} value={value} variable="WEBHOOK_SECRET" onClose={onClose}>
      <p>{t.secret.body}</p>
    </SecretReveal>
  );
}

function Rotate({ webhook, onClose }: { webhook: Webhook; onClose(): void }) {
  const client = useQueryClient();
  const [secret, setSecret] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [once] = useState(newRequestName);
  if (secret !== null) return <Secret value={secret} onClose={onClose} />;
  const send = async () => {
    setBusy(true);
    setError(null);
    try {
      const { data } = await api.call("post", "/api/v1/webhooks/{webhookId}/rotate", {
        params: { webhookId: webhook.id },
        once,
      });
      void client.invalidateQueries({ queryKey: keys.webhooks });
      setSecret(data.secret);
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return (
    <Confirm
      title={t.rotate.title(hostOf(webhook.url))}
      submit={t.rotate.submit}
      busy={busy}
      call={<ApiCall method="post" path={`/api/v1/webhooks/${webhook.id}/rotate`} />}
      error={error !== null && <Failure what={t.rotate.failed} error={error} />}
      onSubmit={() => void send()}
      onClose={onClose}
    >
      <p>{t.rotate.body}</p>
    </Confirm>
  );
}

function Remove({ webhook, onClose }: { webhook: Webhook; onClose(): void }) {
  const client = useQueryClient();
  const status = useStatus();
  const [busy, setBusy] = useState(false);
  const host = hostOf(webhook.url);
  const send = async () => {
    setBusy(true);
    try {
      await api.call("delete", "/api/v1/webhooks/{webhookId}", {
        params: { webhookId: webhook.id },
        once: newRequestName(),
      });
      client.setQueryData<Webhook[]>(keys.webhooks, (all) => all?.filter((each) => each.id !== webhook.id));
      status.done(t.remove.done(host));
    } catch (error) {
      status.failed(t.remove.failed(host), error);
    }
    onClose();
  };
  return (
    <Confirm
      title={t.remove.title(host)}
      submit={t.remove.submit}
      busy={busy}
      call={<ApiCall method="delete" path={`/api/v1/webhooks/${webhook.id}`} />}
      onSubmit={() => void send()}
      onClose={onClose}
    >
      <p>{t.remove.body}</p>
    </Confirm>
  );
}
