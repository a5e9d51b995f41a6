import { useEffect, useRef, useState } from "react";
import { api, newRequestName, type PreAuthKey } from "@/api";
import { Failure, notATag, TagField, tagsOf, unruledTags, usePolicyTags } from "@/keys";
import { text } from "@/text";
import { ApiCall, Button, Checkbox, CopyButton, Time, useWrites, Warning } from "@/ui";
import { focusOnMistake } from "@/ui/focus";
import { type Kind, keyOf } from "./join";

const t = text.device;

/** Creates the pre-auth key with which servers join. Its value is passed only to the parent page. */
export function KeyStep({
  kind,
  made,
  onMade,
  onTaken,
}: {
  kind: Exclude<Kind, "person">;
  made: PreAuthKey | null;
  onMade(key: PreAuthKey): void;
  /** Called when the key has been copied. */
  onTaken(): void;
}) {
  const [typed, setTyped] = useState("");
  const [passing, setPassing] = useState(keyOf[kind].ephemeral);
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const { now: connected, why } = useWrites("preauthkeys:write");
  const policy = usePolicyTags();
  const tags = tagsOf(typed);
  const life = keyOf[kind];
  const unruled = policy && tags.length > 0 && !notATag(tags) ? unruledTags(policy, tags) : [];
  const body = (now: number) => ({
    aclTags: tags,
    reusable: life.reusable,
    ephemeral: passing,
    preApproved: false,
    expiration: new Date(now + life.hours * 3600e3).toISOString(),
  });

  const submit = async () => {
    setTried(true);
    if (tags.length === 0 || notATag(tags) || busy || !connected) return;
    setBusy(true);
    setError(null);
    try {
      const { data } = await api.call("post", "/api/v1/preauthkey", {
        body: body(Date.now()),
        once: newRequestName(),
      });
      onMade(data.preAuthKey);
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };

  if (made) return <Made made={made} unruled={unruledTagsOf(policy, made)} onTaken={onTaken} />;
  return (
    <form
      noValidate
      className="space-y-3"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
        focusOnMistake(event.currentTarget);
      }}
    >
      <p className="text-ink-2">{t.keyBody}</p>
      <TagField value={typed} onChange={setTyped} error={tried && tags.length === 0 ? t.needsTags : undefined} />
      {life.reusable && <Checkbox label={t.passing} about={t.passingHint} checked={passing} onChange={setPassing} />}
      {unruled.length > 0 && <Warning>{t.noRule(unruled.join(", "))}</Warning>}
      {error !== null && <Failure what={t.keyFailed} error={error} />}
      <div className="flex flex-wrap items-center gap-2">
        <ApiCall method="post" path="/api/v1/preauthkey" body={body(Math.floor(Date.now() / 60e3) * 60e3)} />
        <Button type="submit" look="primary" busy={busy} disabled={busy} why={why}>
          {t.createKey}
        </Button>
      </div>
    </form>
  );
}

const unruledTagsOf = (policy: ReturnType<typeof usePolicyTags>, key: PreAuthKey) =>
  policy ? unruledTags(policy, key.aclTags) : [];

function Made({ made, unruled, onTaken }: { made: PreAuthKey; unruled: string[]; onTaken(): void }) {
  const place = useRef<HTMLParagraphElement>(null);
  // Move the focus, because the button that created the key is gone.
  useEffect(() => place.current?.focus({ preventScroll: true }), []);
  return (
    <div className="space-y-3">
      <p ref={place} tabIndex={-1} className="text-ink-2 outline-none">
        {t.keyMade} <Time at={made.expiration} format={t.keyEnds} /> {t.keyTags(made.aclTags.join(", "))}
      </p>
      <div className="flex gap-2">
        <input
          readOnly
          value={made.key}
          aria-label={t.keyValue}
          onFocus={(event) => event.target.select()}
          onCopy={onTaken}
          autoComplete="off"
          className="h-8 min-w-0 flex-1 rounded-md border border-control bg-canvas px-2.5 font-mono text-12 text-ink"
        />
        <CopyButton value={made.key} what={t.keyValueCopy} className="size-8!" onCopied={onTaken} />
      </div>
      {unruled.length > 0 && <Warning>{t.noRule(unruled.join(", "))}</Warning>}
    </div>
  );
}
