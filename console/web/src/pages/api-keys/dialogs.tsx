import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type ApiKey, api, continueWith, newRequestName, useSession } from "@/api";
import { endOf, Failure, LifeField, units } from "@/keys";
import { printable, text } from "@/text";
import { apiKeys } from "@/text/settings";
import { ApiCall, ApiScript, Button, Choices, Confirm, Dialog, relative, useNow, useStatus, useWrites } from "@/ui";
import { apiKeyName, apiKeyState } from "./facts";
import { ApiKeyReveal, CommentField, createKey, usualLife } from "./forms";

const t = apiKeys;

const expire = (key: ApiKey, at?: string) =>
  api.call("post", "/api/v1/apikey/expire", { body: { id: key.id, at }, once: newRequestName() });

/** Expires a key now. Revoking the session's own key signs the person out. */
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

/** Deletes keys from the list, and reports which ones failed and why, with an option to retry these. */
function useRemove(onClose: () => void) {
  const status = useStatus();
  const [busy, setBusy] = useState(false);
  const words = t.remove;
  const start = async (chosen: readonly ApiKey[]) => {
    setBusy(true);
    const failed: { key: ApiKey; error: unknown }[] = [];
    for (const key of chosen)
      await api
        .call("delete", "/api/v1/apikey/{prefix}", {
          params: { prefix: apiKeyName(key.prefix) },
          once: newRequestName(),
        })
        .catch((error: unknown) => void failed.push({ key, error }));
    const [first] = chosen;
    const one = chosen.length === 1 && first ? apiKeyName(first.prefix) : undefined;
    const done = chosen.length - failed.length;
    if (done > 0) status.done(one ? words.done(one) : words.doneMany(done));
    if (failed.length > 0)
      status.failed(
        one ? words.failed(one) : words.failedMany(failed.length, chosen.length),
        one ? failed[0]?.error : reasonsOf(failed),
        {
          label: one ? text.common.retry : words.retry(failed.length),
          run: () => void start(failed.map(({ key }) => key)),
        },
      );
    onClose();
  };
  return { busy, start };
}

const mostReasons = 3;

function reasonsOf(failed: readonly { key: ApiKey; error: unknown }[]): string {
  const told = failed
    .slice(0, mostReasons)
    .map(({ key, error }) => `${apiKeyName(key.prefix)}: ${error instanceof Error ? error.message : ""}`);
  if (failed.length > mostReasons) told.push(text.nodes.many.more(failed.length - mostReasons));
  return told.join(" · ");
}

/** Asks before keys are deleted from the list, and points out those that are still valid. */
export function Remove({ of: keys, onClose }: { of: readonly ApiKey[]; onClose(): void }) {
  const { busy, start } = useRemove(onClose);
  const now = useNow();
  const words = t.remove;
  const [first] = keys;
  const one = keys.length === 1 && first ? apiKeyName(first.prefix) : undefined;
  const usable = keys.filter((key) => apiKeyState(key, now) === "usable").length;
  return (
    <Confirm
      title={one ? words.title(one) : words.titleMany(keys.length)}
      submit={one ? words.submit : words.submitMany(keys.length)}
      word={keys.length >= 5 ? String(keys.length) : undefined}
      busy={busy}
      call={
        <ApiScript
          calls={keys.map((key) => ({ method: "delete", path: `/api/v1/apikey/${apiKeyName(key.prefix)}` }))}
        />
      }
      onSubmit={() => void start(keys)}
      onClose={onClose}
    >
      {usable > 0 ? (
        <p>
          {one ? t.revoke.body(one) : words.usable(usable)} {words.gone}
        </p>
      ) : (
        <p>{one ? words.body : words.bodyMany}</p>
      )}
      {!one && (
        <ul
          // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard
          tabIndex={0}
          className="max-h-40 overflow-y-auto rounded-md bg-chip px-3 py-2 text-12 text-ink"
        >
          {keys.map((key) => (
            <li key={key.id} className="flex justify-between gap-4">
              <span className="font-mono">{apiKeyName(key.prefix)}</span>
              <span className="truncate">{printable(key.comment)}</span>
            </li>
          ))}
        </ul>
      )}
    </Confirm>
  );
}

/**
 * Replaces a key: creates a new one, continues with it if it is this session's, shows it, and expires the old one when
 * the person has stored the new one. If the new one is not stored, the old one stays valid.
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
      sticky={busy} // the new key is shown only here
      onClose={onClose}
      onSubmit={() => void submit()}
      footer={
        <>
          <ApiCall method="post" path="/api/v1/apikey" body={body(endOf(life, now) ?? now)} />
          <Button disabled={busy} onClick={onClose}>
            {text.common.cancel}
          </Button>
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
