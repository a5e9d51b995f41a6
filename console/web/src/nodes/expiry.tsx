import { useState } from "react";
import { currentOf, type Node, useEtag } from "@/api";
import { localTime, momentOf, momentWords } from "@/keys/life";
import { printable, text } from "@/text";
import { ApiCall, Button, Choices, Confirm, Dialog, Field, Input, relative, usePreferences, useStatus } from "@/ui";
import { useNodeWrites } from "./writes";

/** Sets when the key of a node expires, regardless of other changes to the node in the meantime. */
function useExpiry(node: Node, onClose: () => void) {
  const writes = useNodeWrites();
  const status = useStatus();
  const etag = useEtag(() => writes.etag(node.id));
  const [busy, setBusy] = useState(false);
  const name = printable(node.givenName);
  const failed = (error: unknown) => status.failed(text.nodes.neverExpire.failed(name), error);
  const send = async (expiry: string | null, done: string) => {
    setBusy(true);
    try {
      await writes.setExpiry(node, expiry, etag).catch((error) => {
        if (!currentOf<Node>(error)) throw error;
        return writes.setExpiry(node, expiry);
      });
      // An expiry in the past cannot be restored by undo.
      const undo = node.expired
        ? undefined
        : () =>
            writes.setExpiry(node, node.expiry).then(() => status.done(text.nodes.neverExpire.undone(name)), failed);
      status.done(done, undo);
    } catch (error) {
      failed(error);
    }
    onClose();
  };
  return { busy, name, send };
}

export function NeverExpireDialog({ node, onClose }: { node: Node; onClose(): void }) {
  const t = text.nodes.neverExpire;
  const { busy, name, send } = useExpiry(node, onClose);
  return (
    <Confirm
      title={t.title(name)}
      submit={t.submit}
      danger={false}
      busy={busy}
      onSubmit={() => void send(null, t.done(name))}
      onClose={onClose}
      call={<ApiCall method="post" path={`/api/v1/node/${node.id}/expire`} body={{ disableExpiry: true }} />}
    >
      {node.expired && <p>{t.back}</p>}
      <p>{t.body}</p>
    </Confirm>
  );
}

const custom = "custom";

export function SetExpiryDialog({ node, onClose }: { node: Node; onClose(): void }) {
  const t = text.nodes.setExpiry;
  const { busy, name, send } = useExpiry(node, onClose);
  const { timeZone } = usePreferences();
  const [now] = useState(() => Date.now());
  const [days, setDays] = useState("180");
  const after = (count: number) => now + count * 864e5;
  const before = node.expiry ? Date.parse(node.expiry) : null;
  const [typed, setTyped] = useState(() => localTime(before && before > now ? before : after(180), timeZone));
  const end = days === custom ? momentOf(typed, timeZone) : after(Number(days));
  const valid = end !== null && end > now;
  const expiry = valid ? new Date(end).toISOString() : "";
  return (
    <Dialog
      title={t.title(name)}
      onClose={onClose}
      onSubmit={() => valid && !busy && void send(expiry, t.done(name, relative(expiry, now)))}
      footer={
        <>
          <ApiCall method="post" path={`/api/v1/node/${node.id}/expire`} body={{ expiry }} />
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button type="submit" look="primary" disabled={busy || !valid} busy={busy}>
            {t.submit}
          </Button>
        </>
      }
    >
      {node.expired && <p>{text.nodes.neverExpire.back}</p>}
      <p>{t.body}</p>
      <p className="text-ink">
        {before === null
          ? t.never
          : (node.expired ? t.expired : t.now)(momentWords(before, now, timeZone), relative(node.expiry ?? "", now))}
      </p>
      <Choices<string> label={t.label} choices={{ ...t.choices, [custom]: t.custom }} value={days} onChange={setDays} />
      {days === custom && (
        <Field label={t.date[timeZone]} error={valid ? undefined : t.past}>
          {(control) => (
            <Input
              {...control}
              type="datetime-local"
              min={localTime(now, timeZone)}
              value={typed}
              onChange={(event) => setTyped(event.target.value)}
            />
          )}
        </Field>
      )}
      {valid && days !== custom && <p aria-live="polite">{t.next(momentWords(end, now, timeZone))}</p>}
    </Dialog>
  );
}
