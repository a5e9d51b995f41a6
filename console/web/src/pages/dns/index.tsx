/** The DNS settings that devices receive. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useId, useState } from "react";
import { useLastChange } from "@/activity/lastChange";
import { ApiError, api, type DNS, dnsQuery, keys, newRequestName, useCan } from "@/api";
import { Failure } from "@/keys";
import { Choice } from "@/nodes/conflict";
import { SettingsPage } from "@/pages/settings";
import { text } from "@/text";
import { dnsPage as t } from "@/text/settings";
import {
  ApiCall,
  Banner,
  Button,
  Confirm,
  ErrorState,
  Field,
  LoadingLines,
  NotAllowed,
  Switch,
  TextArea,
  Time,
  UnsavedGuard,
  useStatus,
  useWrites,
  WriteButton,
} from "@/ui";
import { changeOf, clashing, type DNSForm, differing, dnsFields, formOf, type Problems, serverProblems } from "./form";

export function DNSPage() {
  const can = useCan();
  const { data, error, refetch } = useQuery({ ...dnsQuery, enabled: can("dns:read") });
  if (data) return <Settings dns={data.data} etag={data.etag} />;
  return (
    <SettingsPage title={text.settings.dns}>
      {!can("dns:read") ? (
        <NotAllowed scope="dns:read" />
      ) : error ? (
        <ErrorState title={text.settings.dns} error={error} onRetry={() => void refetch()} />
      ) : (
        <LoadingLines widths={["w-48", "w-96", "w-80", "w-64"]} className="space-y-6" />
      )}
    </SettingsPage>
  );
}

/** The state of the form: its initial values, what is typed, and what is wrong with it. */
function useForm(dns: DNS, etag: string | null) {
  const client = useQueryClient();
  const status = useStatus();
  const [begun, setBegun] = useState({ form: formOf(dns), etag });
  const [form, setForm] = useState(begun.form);
  const [problems, setProblems] = useState<Problems>({});
  const [failure, setFailure] = useState<unknown>(null);
  const [theirs, setTheirs] = useState<DNS | null>(null);
  const [busy, setBusy] = useState(false);
  const changed = differing(begun.form, form);
  // Nobody is typing, so show at once what somebody else saved.
  if (changed.length === 0 && begun.etag !== etag && !busy) {
    const now = formOf(dns);
    setBegun({ form: now, etag });
    setForm(now);
  }

  const begin = (from: DNS, tag: string | null) => {
    setBegun({ form: formOf(from), etag: tag });
    setForm(formOf(from));
    setProblems({});
    setFailure(null);
    setTheirs(null);
  };
  const refused = (error: unknown) => {
    const now =
      error instanceof ApiError && error.stale ? (error.problem.current as unknown as DNS | undefined) : undefined;
    if (now) {
      void client.invalidateQueries({ queryKey: keys.dns });
      // Only the settings that the person changed are sent, so other people's changes to other settings are kept.
      return clashing(begun.form, form, formOf(now)).length > 0 ? setTheirs(now) : void save(null);
    }
    const found = error instanceof ApiError ? serverProblems(error.problem.errors ?? [], form) : undefined;
    setProblems(found?.problems ?? {});
    if (!found || found.rest.length > 0 || Object.keys(found.problems).length === 0) setFailure(error);
  };
  const save = async (ifMatch: string | null) => {
    const { change, problems: wrong } = changeOf(begun.form, form);
    setProblems(wrong);
    setFailure(null);
    if (Object.keys(wrong).length > 0 || changed.length === 0) return;
    setBusy(true);
    try {
      const answer = await api.call("patch", "/api/v1/dns", { body: change, ifMatch, once: newRequestName() });
      client.setQueryData(keys.dns, answer);
      begin(answer.data, answer.etag);
      status.done(t.saved);
    } catch (error) {
      refused(error);
    }
    setBusy(false);
  };
  return { form, setForm, begun, begin, changed, problems, failure, theirs, busy, save };
}

function Settings({ dns, etag }: { dns: DNS; etag: string | null }) {
  const { offered, now: connected, why } = useWrites("dns:write");
  const state = useForm(dns, etag);
  const { form, begun, changed, failure, theirs, save } = state;
  const [resetting, setResetting] = useState(false);
  const editable = offered && !dns.pinned;
  const formId = useId();
  return (
    <SettingsPage
      title={text.settings.dns}
      actions={
        dns.source === "api" &&
        !dns.pinned && (
          <WriteButton right="dns:write" onClick={() => setResetting(true)}>
            {t.reset.open}
          </WriteButton>
        )
      }
      footer={
        editable &&
        changed.length > 0 && (
          <div className="flex max-w-[720px] flex-wrap items-center gap-2">
            <span className="basis-full text-12 text-ink-2">{connected ? t.unsaved : text.common.offlineWrite}</span>
            <ApiCall method="patch" path="/api/v1/dns" body={changeOf(begun.form, form).change} />
            <Button onClick={() => state.begin(dns, etag)}>{t.discard}</Button>
            <Button type="submit" form={formId} look="primary" busy={state.busy} disabled={state.busy} why={why}>
              {t.save}
            </Button>
          </div>
        )
      }
    >
      <form
        id={formId}
        className="max-w-[720px] space-y-5"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void save(begun.etag);
        }}
      >
        {dns.pinned && (
          <div className="overflow-hidden rounded-lg">
            <Banner>{t.pinned}</Banner>
          </div>
        )}
        <p className="text-ink-2">
          {t.source[dns.source]} {dns.updatedAt && <Time at={dns.updatedAt} format={t.changed} />}
        </p>
        {theirs && (
          <Conflict
            form={form}
            theirs={formOf(theirs)}
            names={clashing(begun.form, form, formOf(theirs))}
            onMine={() => void save(null)}
            onTheirs={() => state.begin(theirs, begun.etag)}
          />
        )}
        {failure !== null && <Failure what={t.failed} error={failure} />}
        <Fields dns={dns} state={state} editable={editable} />
      </form>
      {editable && changed.length > 0 && <UnsavedGuard reason="dns" />}
      {resetting && <Reset etag={etag} onClose={() => setResetting(false)} />}
    </SettingsPage>
  );
}

function Fields({
  dns,
  state: { form, setForm, problems },
  editable,
}: {
  dns: DNS;
  state: ReturnType<typeof useForm>;
  editable: boolean;
}) {
  const magicId = useId();
  return (
    <div className="divide-y divide-line rounded-lg border border-line bg-surface">
      <div className="p-4">
        <div className="font-medium">{t.base}</div>
        <div className="font-mono text-13">{dns.baseDomain}</div>
        <p className="text-12 text-ink-2">{dns.baseDomain ? t.baseHint : t.noBase}</p>
      </div>
      <div className="flex items-start gap-6 p-4">
        <div className="flex-1">
          {editable ? (
            <label htmlFor={magicId} className="font-medium">
              {t.magic}
            </label>
          ) : (
            <div className="font-medium">{t.magic}</div>
          )}
          <p className="text-12 text-ink-2">{t.magicHint}</p>
          {problems.magicDNS && (
            <p role="alert" className="text-12 text-bad">
              {problems.magicDNS}
            </p>
          )}
        </div>
        {editable ? (
          <Switch id={magicId} checked={form.magicDNS} onChange={(magicDNS) => setForm({ ...form, magicDNS })} />
        ) : (
          <span className="text-ink-2">{t.onOff[form.magicDNS ? "on" : "off"]}</span>
        )}
      </div>
      {!editable &&
        dnsFields.map((name) => (
          <div key={name} className="p-4">
            <div className="font-medium">{t.fields[name]}</div>
            <div className="font-mono text-13 break-words whitespace-pre-wrap text-ink-2">
              {form[name] || text.common.none}
            </div>
          </div>
        ))}
      {editable &&
        dnsFields.map((name) => (
          <div key={name} className="p-4">
            <Field label={t.fields[name]} hint={t.hints[name]} error={problems[name]}>
              {(control) => (
                <TextArea
                  {...control}
                  mono
                  rows={Math.min(12, Math.max(2, form[name].split("\n").length + 1))}
                  value={form[name]}
                  onChange={(event) => setForm({ ...form, [name]: event.target.value })}
                />
              )}
            </Field>
          </div>
        ))}
    </div>
  );
}

function Conflict({
  form,
  theirs,
  names,
  onMine,
  onTheirs,
}: {
  form: DNSForm;
  theirs: DNSForm;
  names: readonly (keyof DNSForm)[];
  onMine(): void;
  onTheirs(): void;
}) {
  const last = useLastChange({ kind: "dns", members: names });
  const shown = (from: DNSForm, name: keyof DNSForm) =>
    name === "magicDNS" ? t.onOff[from.magicDNS ? "on" : "off"] : from[name].trim() || text.common.none;
  return (
    <div role="alert" className="space-y-3 rounded-lg border border-line-strong bg-surface p-4">
      <p className="font-medium">{last ? t.conflict.by(last.who, last.when) : t.conflict.title}</p>
      {names.map((name) => (
        <div key={name}>
          <p className="text-12 text-ink-2">{name === "magicDNS" ? t.magic : t.fields[name]}</p>
          <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1">
            <dt className="text-ink-2">{text.nodes.conflict.mine}</dt>
            <dd className="font-mono text-12 leading-5 break-words whitespace-pre-wrap">{shown(form, name)}</dd>
            <dt className="text-ink-2">{text.nodes.conflict.theirs}</dt>
            <dd className="font-mono text-12 leading-5 break-words whitespace-pre-wrap">{shown(theirs, name)}</dd>
          </dl>
        </div>
      ))}
      <Choice onMine={onMine} onTheirs={onTheirs} />
    </div>
  );
}

function Reset({ etag, onClose }: { etag: string | null; onClose(): void }) {
  const client = useQueryClient();
  const status = useStatus();
  const [busy, setBusy] = useState(false);
  const submit = async () => {
    setBusy(true);
    try {
      const answer = await api.call("delete", "/api/v1/dns", { ifMatch: etag, once: newRequestName() });
      client.setQueryData(keys.dns, answer);
      status.done(t.reset.done);
    } catch (error) {
      status.failed(t.reset.failed, error);
    }
    onClose();
  };
  return (
    <Confirm
      title={t.reset.title}
      submit={t.reset.submit}
      busy={busy}
      call={<ApiCall method="delete" path="/api/v1/dns" />}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <p>{t.reset.body}</p>
    </Confirm>
  );
}
