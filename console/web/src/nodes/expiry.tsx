import { useState } from "react";
import { currentOf, type Node, useEtag } from "@/api";
import { printable, text } from "@/text";
import { ApiCall, Button, Choices, Confirm, Dialog, relative, useStatus } from "@/ui";
import { useNodeWrites } from "./writes";

/** Changes when the key of a node expires, regardless of other changes to the node in the meantime. */
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

export function SetExpiryDialog({ node, onClose }: { node: Node; onClose(): void }) {
  const t = text.nodes.setExpiry;
  const { busy, name, send } = useExpiry(node, onClose);
  const [days, setDays] = useState("180");
  const [now] = useState(() => Date.now());
  const expiry = new Date(now + Number(days) * 864e5).toISOString();
  return (
    <Dialog
      title={t.title(name)}
      onClose={onClose}
      onSubmit={() => !busy && void send(expiry, t.done(name, relative(expiry, now)))}
      footer={
        <>
          <ApiCall method="post" path={`/api/v1/node/${node.id}/expire`} body={{ expiry }} />
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button type="submit" look="primary" disabled={busy} busy={busy}>
            {t.submit}
          </Button>
        </>
      }
    >
      {node.expired && <p>{text.nodes.neverExpire.back}</p>}
      <p>{t.body}</p>
      <Choices<string> label={t.label} choices={t.choices} value={days} onChange={setDays} />
    </Dialog>
  );
}
