import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { ApiError, api, keys, newRequestName, policyQuery } from "@/api";
import { withPlainLines } from "@/api/resources";
import { discardDraft } from "@/policy";
import { text as common } from "@/text";
import { words } from "@/text/policy";
import { ApiCall, Banner, Button, Delayed, Dialog, Field, Input, Skeleton, useStatus, useWrites } from "@/ui";
import { DiffView } from "./DiffView";
import { Effect } from "./Effect";
import type { EffectActions } from "./EffectCards";
import { removalOf, saveWords } from "./effectWords";
import type { Verdict } from "./useVerdict";

const trial = "5m";

/**
 * Shows what is about to be saved and its effect, and asks for a reason. Nothing can be saved without being shown here.
 */
export function Review({
  text,
  saved,
  etag,
  verdict,
  actions,
  onClose,
}: {
  text: string;
  saved: string;
  etag: string | null;
  verdict: Verdict;
  actions: EffectActions;
  onClose(): void;
}) {
  const t = words.save;
  const [reason, setReason] = useState("");
  const [missing, setMissing] = useState(false);
  const reasonField = useRef<HTMLInputElement>(null);
  const { busy, failure, save } = useSave(text, etag, onClose);
  const { now } = useWrites("policy:write");
  const { effect } = verdict;
  const removal = effect ? removalOf(effect) : null;
  const failing = new Set(effect?.tests.map((test) => test.line)).size;
  // If the effect is unknown, assume the worst.
  const needed = removal ? removal.any : true;
  const known = verdict.settled && (effect !== null || verdict.error !== null);
  const ready = now && known && failing === 0 && !busy;
  const careful = (effect?.guards.length ?? 0) > 0;
  const send = (within?: string) => {
    if (!ready) return;
    const said = reason.trim();
    if (needed && !said) {
      setMissing(true);
      reasonField.current?.focus();
      return;
    }
    void save(said, within);
  };
  const body = { policy: text, ...(reason.trim() && { reason: reason.trim() }) };
  return (
    <Dialog
      title={t.title}
      wide
      onClose={onClose}
      onSubmit={() => send()}
      footer={
        <>
          <ApiCall method="put" path="/api/v1/policy" body={body} />
          <Button onClick={onClose}>{common.common.cancel}</Button>
          <Button look={careful ? "primary" : "plain"} disabled={!ready} onClick={() => send(trial)}>
            {t.tryFor}
          </Button>
          <Button type="submit" look={needed ? "danger" : "primary"} disabled={!ready} busy={busy}>
            {effect ? saveWords(effect) : t.submit}
          </Button>
        </>
      }
    >
      {failure && <Failure error={failure} />}
      <Field
        label={t.reason}
        hint={needed ? t.reasonNeeded : t.reasonHint}
        error={missing && needed && !reason.trim() ? t.reasonMissing : undefined}
      >
        {(control) => (
          <Input
            {...control}
            ref={reasonField}
            required={needed}
            value={reason}
            maxLength={500}
            onChange={(event) => setReason(event.target.value)}
          />
        )}
      </Field>
      {failing > 0 && <Banner tone="bad">{words.tests.failing(failing)}</Banner>}
      {effect && <Effect effect={effect} actions={actions} of="save" />}
      {!known && (
        <Delayed>
          <Skeleton className="h-16! w-full" />
        </Delayed>
      )}
      {effect?.tests.map((test) => (
        <p key={test.text} className="text-12 text-bad">
          {test.text}
        </p>
      ))}
      <p className="text-12">{t.tryHint}</p>
      <h3 className="pt-1 text-13 font-medium text-ink">{t.changes}</h3>
      <DiffView before={saved} text={text} label={t.changes} className="max-h-[40vh] overflow-y-auto!" />
    </Dialog>
  );
}

function Failure({ error }: { error: ApiError }) {
  const place = useRef<HTMLDivElement>(null);
  // The dialog may be scrolled down to the changes.
  useEffect(() => {
    place.current?.scrollIntoView({ block: "nearest" });
  }, []);
  return (
    <div ref={place} role="alert" className="rounded-lg border border-bad bg-bad-soft px-3 py-2.5 text-bad">
      <p className="font-medium">{words.save.failed}</p>
      <p className="break-words">{error.status === 409 ? words.save.onTrial : error.detail}</p>
      {error.requestId && <p className="font-mono text-11">{common.common.reference(error.requestId)}</p>}
    </div>
  );
}

function useSave(policy: string, etag: string | null, onClose: () => void) {
  const client = useQueryClient();
  const status = useStatus();
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<ApiError | null>(null);
  // However often the button is pressed and the response is lost, the policy is saved once: the same request has the
  // same idempotency key, and its If-Match is what was reviewed, even if the page has since reloaded what it saved.
  const [base] = useState(etag);
  const names = useRef(new Map<string, string>());
  const save = async (reason: string, confirmWithin?: string) => {
    setBusy(true);
    setFailure(null);
    try {
      const body = { policy, ...(reason && { reason }), ...(confirmWithin && { confirmWithin }) };
      const which = JSON.stringify(body);
      const once = names.current.get(which) ?? newRequestName();
      names.current.set(which, once);
      const answer = await api.call("put", "/api/v1/policy", { body, ifMatch: base, once });
      discardDraft();
      client.setQueryData(policyQuery.queryKey, { policy: withPlainLines(answer.data), etag: answer.etag });
      void client.invalidateQueries({ queryKey: keys.policyVersions });
      onClose();
      status.done((confirmWithin ? words.save.tried : words.save.done)(answer.data.version));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      // Somebody else saved first: the page shows their version and offers to merge.
      void client.invalidateQueries({ queryKey: keys.policy });
      if (error.stale) onClose();
      else setFailure(error);
    } finally {
      setBusy(false);
    }
  };
  return { busy, failure, save };
}
