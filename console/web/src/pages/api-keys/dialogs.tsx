import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type ApiKey, api, continueWith, newRequestName, useSession } from "@/api";
import { endOf, Failure, LifeField, units } from "@/keys";
import { text } from "@/text";
import { apiKeys } from "@/text/settings";
import { ApiCall, Button, Choices, Confirm, Dialog, relative, useNow, useStatus, useWrites } from "@/ui";
import { apiKeyName } from "./facts";
import { ApiKeyReveal, CommentField, createKey, usualLife } from "./forms";

const t = apiKeys;

const expire = (key: ApiKey, at?: string) =>
  api.call("post", "/api/v1/apikey/expire", { body: { id: key.id, at }, once: newRequestName() });

/** Ends a key now. The person's own signs them out. */
export function Revoke({ of: key, onClose }: { of: ApiKey; onClose(): void }) {
  const { key: session } = useSession();
  const status = useStatus();
  const now = useNow();
  const [busy, setBusy] = useState(false);
  const name = apiKeyName(key.prefix);
  const own = key.prefix === session.prefix;
  const submit = async () => {
    setBusy(true);
    try {
      await expire(key);
      if (own) location.reload();
      else status.done(t.revoke.done(name));
    } catch (error) {
      status.failed(t.revoke.failed(name), error);
    }
    onClose();
  };
  return (
    <Confirm
      title={t.revoke.title(name)}
      submit={t.revoke.submit}
      word={own ? name : undefined}
      busy={busy}
      call={<ApiCall method="post" path="/api/v1/apikey/expire" body={{ id: key.id }} />}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <p>
        {t.revoke.body(name)}{" "}
        {key.lastSeen ? t.revoke.used(relative(key.lastSeen, now), key.lastUsedFrom) : t.revoke.never}
      </p>
      {own && <p className="font-medium text-ink">{t.revoke.own}</p>}
    </Confirm>
  );
}

/** Takes a key that is over from the list. */
export function Remove({ of: key, onClose }: { of: ApiKey; onClose(): void }) {
  const status = useStatus();
  const [busy, setBusy] = useState(false);
  const name = apiKeyName(key.prefix);
  const submit = async () => {
    setBusy(true);
    try {
      await api.call("delete", "/api/v1/apikey/{prefix}", { params: { prefix: name }, once: newRequestName() });
      status.done(t.remove.done(name));
    } catch (error) {
      status.failed(t.remove.failed(name), error);
    }
    onClose();
  };
  return (
    <Confirm
      title={t.remove.title(name)}
      submit={t.remove.submit}
      busy={busy}
      call={<ApiCall method="delete" path={`/api/v1/apikey/${name}`} />}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <p>{t.remove.body}</p>
    </Confirm>
  );
}

/**
 * Puts a new key in the place of one: makes it, goes on with it when it is this session's, shows it, and ends the old
 * one when the person has stored it. Whoever does not store the new one keeps the old one.
 */
export function Rotate({ of: key, onClose }: { of: ApiKey; onClose(): void }) {
  const client = useQueryClient();
  const { key: session } = useSession();
  const { now: connected, why } = useWrites("apikeys:write");
  const status = useStatus();
  const now = useNow();
  const [own] = useState(key.prefix === session.prefix);
  const [made, setMade] = useState<string | null>(null);
  const [comment, setComment] = useState(key.comment);
  const [life, setLife] = useState(usualLife);
  const [overlap, setOverlap] = useState<keyof typeof t.rotate.overlaps>("24");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const name = apiKeyName(key.prefix);

  const body = (at: number) => ({
    role: key.role,
    scopes: [...key.scopes],
    comment: comment.trim(),
    expiration: new Date(at).toISOString(),
  });
  const submit = async () => {
    const expires = endOf(life, Date.now());
    if (expires === null || busy || !connected) return;
    setBusy(true);
    try {
      const value = await createKey(body(expires));
      setMade(value);
      if (own) await continueWith(client, value).catch((failure) => status.failed(t.rotate.switchFailed, failure));
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  const finish = async (stored: boolean) => {
    onClose();
    if (!stored) return status.done(t.rotate.kept(name));
    const hours = Number(overlap);
    try {
      await expire(key, hours > 0 ? new Date(Date.now() + hours * units.hours).toISOString() : undefined);
      status.done(hours > 0 ? t.rotate.doneLater(name, hours) : t.rotate.done(name));
    } catch (failure) {
      status.failed(t.rotate.endFailed(name), failure);
    }
  };

  if (made !== null)
    return <ApiKeyReveal title={t.rotate.made} value={made} onClose={(stored) => void finish(stored)} />;
  return (
    <Dialog
      title={t.rotate.title(name)}
      onClose={onClose}
      onSubmit={() => void submit()}
      footer={
        <>
          <ApiCall method="post" path="/api/v1/apikey" body={body(endOf(life, now) ?? now)} />
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button type="submit" look="primary" busy={busy} disabled={busy} why={why}>
            {t.rotate.submit}
          </Button>
        </>
      }
    >
      <p>
        {t.rotate.body(name)} {own && t.rotate.own}
      </p>
      <CommentField value={comment} onChange={setComment} />
      <LifeField choices={t.create.lives} value={life} onChange={setLife} />
      <Choices<keyof typeof t.rotate.overlaps>
        label={t.rotate.overlap}
        choices={t.rotate.overlaps}
        value={overlap}
        onChange={setOverlap}
      />
      <p className="text-12">{t.rotate.overlapHint}</p>
      {error !== null && <Failure what={t.rotate.failed} error={error} />}
    </Dialog>
  );
}
