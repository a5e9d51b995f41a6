import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { ApiError, api, keys, newRequestName, type PendingLogin, type PendingSSH, useCan, useUsers } from "@/api";
import { compareText, printable, text } from "@/text";
import { requestWords } from "@/text/requests";
import { ApiCall, Banner, Button, Dialog, Field, Input, Select, useStatus, useWrites } from "@/ui";
import { CreateUserDialog } from "@/users";
import { deviceName } from "./facts";

const t = requestWords;

/** An action on a waiting request that a person starts. */
export type RequestAction =
  | { name: "approve"; login: PendingLogin | null }
  | { name: "reject"; login: PendingLogin }
  | { name: "approveSSH" | "rejectSSH"; waiting: PendingSSH };

export function RequestDialogs({ action, onClose }: { action: RequestAction; onClose(): void }) {
  switch (action.name) {
    case "approve":
      return <Approve login={action.login} onClose={onClose} />;
    case "reject":
      return <Reject login={action.login} onClose={onClose} />;
    default:
      return <AnswerSSH waiting={action.waiting} approve={action.name === "approveSSH"} onClose={onClose} />;
  }
}

/** Sends a decision once, keeps the dialog open with the server's message if it fails, and refetches the list. */
function useAnswer(queryKey: readonly string[], onClose: () => void) {
  const client = useQueryClient();
  const status = useStatus();
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<ApiError | null>(null);
  const [once] = useState(newRequestName);
  const send = async (call: (once: string) => Promise<string>, failed: string) => {
    if (busy) return;
    setBusy(true);
    setRefused(null);
    try {
      status.done(await call(once));
      onClose();
    } catch (error) {
      setBusy(false);
      if (error instanceof ApiError && error.status >= 400 && error.status < 500) setRefused(error);
      else {
        onClose();
        status.failed(failed, error);
      }
    }
    void client.invalidateQueries({ queryKey });
  };
  return { busy, refused, send };
}

function Refused({ error }: { error: ApiError | null }) {
  if (!error) return null;
  return (
    <div role="alert" className="text-12 text-bad">
      {error.detail}
      {error.requestId && <div className="font-mono text-11">{text.common.reference(error.requestId)}</div>}
    </div>
  );
}

const Code = ({ children }: { children: ReactNode }) => (
  <div className="rounded-md bg-chip py-2 text-center font-mono text-18 tracking-[0.08em] text-ink">{children}</div>
);

function Approve({ login, onClose }: { login: PendingLogin | null; onClose(): void }) {
  const words = t.approve;
  const { busy, refused, send } = useAnswer(keys.logins, onClose);
  const [code, setCode] = useState(login?.code ?? "");
  const { data: users } = useUsers();
  const only = users?.complete && users.items.length === 1 ? users.items[0]?.name : undefined;
  const [chosen, setUser] = useState<string | null>(null);
  const user = chosen ?? only ?? "";
  const [tried, setTried] = useState(false);
  const name = login ? deviceName(login) : words.theDevice;
  const body = { user, authId: code.trim() };
  const path = login ? "/api/v1/auth/approve" : "/api/v1/auth/register";
  const submit = () => {
    setTried(true);
    if (!body.user || !body.authId) return;
    void send(async (once) => {
      const { data } = await api.call("post", path, { body, once });
      return data.node ? words.joined(printable(data.node.givenName), printable(user)) : words.later(name);
    }, words.failed(name));
  };
  return (
    <Dialog
      title={login ? words.title(name) : words.titleByHand}
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <ApiCall method="post" path={path} body={body} />
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button type="submit" look="primary" busy={busy}>
            {login ? words.submit(name) : words.submitByHand}
          </Button>
        </>
      }
    >
      <p>{words.body}</p>
      {login ? (
        <>
          <p>{words.compare}</p>
          <Code>{login.code}</Code>
        </>
      ) : (
        <Field label={words.code} hint={words.codeHint} error={tried && !body.authId ? words.codeNeeded : undefined}>
          {(control) => (
            <Input {...control} mono value={code} maxLength={512} onChange={(e) => setCode(e.target.value)} autoFocus />
          )}
        </Field>
      )}
      <OwnerField value={user} onChange={setUser} missing={tried && !user} />
      {login && login.tags.length > 0 && (
        <div className="overflow-hidden rounded-md">
          <Banner tone="warn">{words.tags(printable(login.tags.join(" "), 200))}</Banner>
        </div>
      )}
      <Refused error={refused} />
    </Dialog>
  );
}

/** The future owner of the node. Without permission to see users, the name is typed. */
function OwnerField({ value, onChange, missing }: { value: string; onChange(name: string): void; missing: boolean }) {
  const words = t.approve;
  const can = useCan();
  const { data } = useUsers();
  const { offered, why } = useWrites("users:write");
  const [creating, setCreating] = useState(false);
  const error = missing ? words.userNeeded : undefined;
  if (!can("users:read"))
    return (
      <Field label={words.user} hint={words.userHint} error={error}>
        {(control) => <Input {...control} value={value} onChange={(e) => onChange(e.target.value)} />}
      </Field>
    );
  const names = [...(data?.items ?? [])].sort((a, b) => compareText(a.name, b.name));
  return (
    <>
      <Field label={words.user} hint={words.userHint} error={error}>
        {(control) => (
          <div className="flex gap-2">
            <Select {...control} className="min-w-0 flex-1" value={value} onChange={(e) => onChange(e.target.value)}>
              <option value="">{words.choose}</option>
              {names.map((user) => (
                <option key={user.id} value={user.name}>
                  {printable(user.displayName ? `${user.name} (${user.displayName})` : user.name)}
                </option>
              ))}
            </Select>
            {offered && (
              <Button why={why} onClick={() => setCreating(true)}>
                {words.createUser}
              </Button>
            )}
          </div>
        )}
      </Field>
      {creating && <CreateUserDialog onClose={() => setCreating(false)} onCreated={(user) => onChange(user.name)} />}
    </>
  );
}

function Reject({ login, onClose }: { login: PendingLogin; onClose(): void }) {
  const words = t.reject;
  const { busy, refused, send } = useAnswer(keys.logins, onClose);
  const [reason, setReason] = useState("");
  const name = deviceName(login);
  const body = { authId: login.code, reason: reason.trim() || undefined };
  const submit = () =>
    void send(async (once) => {
      await api.call("post", "/api/v1/auth/reject", { body, once });
      return words.done(name);
    }, words.failed(name));
  return (
    <Dialog
      title={words.title(name)}
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <ApiCall method="post" path="/api/v1/auth/reject" body={body} />
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button type="submit" look="danger" busy={busy}>
            {words.submit(name)}
          </Button>
        </>
      }
    >
      <p>{words.body}</p>
      <Field label={words.reason} hint={words.reasonHint}>
        {(control) => (
          <Input {...control} value={reason} maxLength={200} onChange={(e) => setReason(e.target.value)} autoFocus />
        )}
      </Field>
      <Refused error={refused} />
    </Dialog>
  );
}

function AnswerSSH({ waiting, approve, onClose }: { waiting: PendingSSH; approve: boolean; onClose(): void }) {
  const words = t.ssh;
  const { busy, refused, send } = useAnswer(keys.ssh, onClose);
  const [reason, setReason] = useState("");
  const from = printable(waiting.session.sourceName, 60);
  const to = printable(waiting.session.targetName, 60);
  const path = approve ? "/api/v1/ssh/approve" : "/api/v1/ssh/reject";
  const body = approve ? { code: waiting.code } : { code: waiting.code, reason: reason.trim() || undefined };
  const submit = () =>
    void send(async (once) => {
      await api.call("post", path, { body, once });
      return approve ? words.approved(from, to) : words.rejected(from, to);
    }, words.answerFailed);
  return (
    <Dialog
      title={approve ? words.approveTitle(from, to) : words.rejectTitle(from, to)}
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <ApiCall method="post" path={path} body={body} />
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button type="submit" look={approve ? "primary" : "danger"} busy={busy}>
            {approve ? words.approveSubmit : words.rejectSubmit}
          </Button>
        </>
      }
    >
      <p>{approve ? words.approveBody(printable(waiting.session.sshUser, 60)) : words.rejectBody}</p>
      {approve ? (
        <>
          <p>{words.compare}</p>
          <Code>{waiting.code}</Code>
        </>
      ) : (
        <Field label={t.reject.reason} hint={words.reasonHint}>
          {(control) => (
            <Input {...control} value={reason} maxLength={200} onChange={(e) => setReason(e.target.value)} autoFocus />
          )}
        </Field>
      )}
      <Refused error={refused} />
    </Dialog>
  );
}
