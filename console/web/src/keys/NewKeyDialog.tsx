import { type ReactNode, useState } from "react";
import { ApiError } from "@/api";
import type { Right } from "@/api/session";
import { text } from "@/text";
import { ApiCall, Button, Dialog, useNow, useWrites } from "@/ui";
import { endOf, type Life } from "./life";

/** A form that creates a key, with the equivalent API call. */
export function NewKeyDialog<B>({
  words,
  right,
  path,
  body,
  life,
  complete,
  create,
  onMade,
  onClose,
  children,
}: {
  words: { title: string; submit: string; failed: string };
  right: Right;
  path: string;
  /** The request body for a key that expires at this time. */
  body(expires: number): B;
  life: Life;
  /** Whether the other fields are filled in. */
  complete: boolean;
  /** Creates the key and returns its only copy. */
  create(body: B): Promise<string>;
  onMade(key: string): void;
  onClose(): void;
  /** The fields. If `tried`, after an attempt to submit, they say what is missing. */
  children(tried: boolean): ReactNode;
}) {
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const { now: connected, why } = useWrites(right);
  const now = useNow();
  const submit = async () => {
    setTried(true);
    const expires = endOf(life, Date.now());
    if (!complete || expires === null || busy || !connected) return;
    setBusy(true);
    try {
      onMade(await create(body(expires)));
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={words.title}
      sticky={busy} // the new key is shown only here
      onClose={onClose}
      onSubmit={() => void submit()}
      footer={
        <>
          <ApiCall method="post" path={path} body={body(endOf(life, now) ?? now)} />
          <Button disabled={busy} onClick={onClose}>
            {text.common.cancel}
          </Button>
          <Button type="submit" look="primary" busy={busy} disabled={busy} why={why}>
            {words.submit}
          </Button>
        </>
      }
    >
      {children(tried)}
      {error !== null && <Failure what={words.failed} error={error} />}
    </Dialog>
  );
}

/** An error, in the dialog in which it happened. */
export function Failure({ what, error }: { what: string; error: unknown }) {
  const id = error instanceof ApiError ? error.requestId : "";
  return (
    <div role="alert" className="rounded-md bg-bad-soft px-3 py-2 text-bad">
      <p className="font-medium">{what}</p>
      <p>{error instanceof Error ? error.message : String(error)}</p>
      {id && <p className="font-mono text-11">{text.common.reference(id)}</p>}
    </div>
  );
}
