import { useState } from "react";
import { ApiError, newRequestName, type User, useUsers } from "@/api";
import { printable, text } from "@/text";
import { userWords } from "@/text/users";
import { ApiCall, Button, Checkbox, Dialog, Field, Input, useStatus } from "@/ui";
import { isUserName } from "./facts";
import { InviteDialog } from "./invite";
import { useAccessWrites, useUserWrites } from "./writes";

/** Creates a local user. */
export function CreateUserDialog({
  inviting,
  onClose,
  onCreated,
}: {
  /** Whether to offer an invitation, which is the next step. */
  inviting?: boolean;
  onClose(): void;
  onCreated?(user: User): void;
}) {
  const t = userWords.create;
  const access = useAccessWrites();
  const [invite, setInvite] = useState(false);
  const [created, setCreated] = useState<User | null>(null);
  const writes = useUserWrites();
  const status = useStatus();
  const { data } = useUsers();
  const [name, setName] = useState("");
  const [displayName, setDisplayName] = useState("");
  const [email, setEmail] = useState("");
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<ApiError | null>(null);
  const [once] = useState(newRequestName);

  const typed = name.trim();
  const taken = data?.items.find((user) => user.name.toLowerCase() === typed.toLowerCase());
  const problem = taken ? t.taken(printable(taken.name)) : isUserName(typed) ? undefined : t.bad;
  const shown = taken || tried || typed.length > 1 ? problem : undefined;
  const body = { name: typed, displayName: displayName.trim() || undefined, email: email.trim() || undefined };

  const send = async () => {
    setTried(true);
    if (problem || busy) return;
    setBusy(true);
    setRefused(null);
    try {
      const user = await writes.create(body, once);
      status.done(t.done(printable(user.name)));
      if (invite) return setCreated(user);
      onClose();
      onCreated?.(user);
    } catch (error) {
      setBusy(false);
      if (error instanceof ApiError) setRefused(error);
      else status.failed(t.failed, error);
    }
  };
  if (created) return <InviteDialog user={created} onClose={onClose} />;
  return (
    <Dialog
      title={t.title}
      onClose={onClose}
      onSubmit={() => void send()}
      footer={
        <>
          <ApiCall method="post" path="/api/v1/user" body={body} />
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button type="submit" look="primary" busy={busy}>
            {t.submit}
          </Button>
        </>
      }
    >
      <p>{t.body}</p>
      <Field label={t.name} hint={t.nameHint} error={shown}>
        {(control) => (
          <Input {...control} mono value={name} maxLength={255} onChange={(e) => setName(e.target.value)} autoFocus />
        )}
      </Field>
      <Field label={t.displayName}>
        {(control) => (
          <Input {...control} value={displayName} maxLength={255} onChange={(e) => setDisplayName(e.target.value)} />
        )}
      </Field>
      <Field label={t.email} hint={t.emailHint}>
        {(control) => (
          <Input {...control} type="email" value={email} maxLength={254} onChange={(e) => setEmail(e.target.value)} />
        )}
      </Field>
      {inviting && access.offered && (
        <Checkbox checked={invite} onChange={setInvite} label={t.invite} about={t.inviteHint} />
      )}
      {refused && (
        <div role="alert" className="text-12 text-bad">
          {refused.detail}{" "}
          {refused.requestId && <span className="font-mono">{text.common.reference(refused.requestId)}</span>}
        </div>
      )}
    </Dialog>
  );
}
