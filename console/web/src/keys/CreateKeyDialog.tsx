import { useState } from "react";
import { ApiError, api, newRequestName, useSession, useUsers } from "@/api";
import { printable, text } from "@/text";
import {
  ApiCall,
  Banner,
  Button,
  Checkbox,
  Choices,
  Command,
  Dialog,
  Field,
  SecretReveal,
  Select,
  useNow,
  useWrites,
} from "@/ui";
import { isLongLived, notATag, tagsOf } from "./facts";
import { type JoinSystem, joinCommand } from "./join";
import { LifeField } from "./LifeField";
import { endOf, type Life } from "./life";
import { usePolicyTags } from "./policyTags";
import { TagField } from "./TagField";

const t = text.keys.create;

interface Form {
  owner: "user" | "tags";
  user: string;
  tags: string;
  life: Life;
  reusable: boolean;
  ephemeral: boolean;
}

/** Asks what a pre-auth key shall be good for, makes it, and shows it once. */
export function CreateKeyDialog({
  onClose,
  user,
  tags,
}: {
  onClose(): void;
  /** The name of the user that shall own the nodes. */
  user?: string;
  tags?: readonly string[];
}) {
  const [made, setMade] = useState<string | null>(null);
  if (made !== null) return <KeyReveal value={made} onClose={onClose} />;
  return (
    <KeyForm
      start={{
        owner: user === undefined && tags ? "tags" : "user",
        user: user ?? "",
        tags: tags?.join(" ") ?? "",
        life: { choice: "1", count: "2", unit: "days" },
        reusable: false,
        ephemeral: false,
      }}
      onMade={setMade}
      onClose={onClose}
    />
  );
}

function KeyForm({ start, onMade, onClose }: { start: Form; onMade(key: string): void; onClose(): void }) {
  const [form, setForm] = useState(start);
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const { now: connected, why } = useWrites("preauthkeys:write");
  const { data: users } = useUsers();
  const now = useNow();
  const policy = usePolicyTags();
  const set = (change: Partial<Form>) => setForm((before) => ({ ...before, ...change }));

  const tags = form.owner === "tags" ? tagsOf(form.tags) : [];
  const missing = form.owner === "user" ? form.user === "" : tags.length === 0 || notATag(tags) !== undefined;
  const end = endOf(form.life, now);
  const powerful = tags.filter((tag) => policy?.powerful.includes(tag));

  const body = (expires: number) => ({
    user: form.owner === "user" ? form.user : undefined,
    aclTags: form.owner === "tags" ? tags : undefined,
    reusable: form.reusable,
    ephemeral: form.ephemeral,
    expiration: new Date(expires).toISOString(),
  });
  const submit = async () => {
    setTried(true);
    const expires = endOf(form.life, Date.now());
    if (missing || expires === null || busy || !connected) return;
    setBusy(true);
    try {
      const { data } = await api.call("post", "/api/v1/preauthkey", {
        body: body(expires),
        once: newRequestName(),
      });
      onMade(data.preAuthKey.key);
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };

  return (
    <Dialog
      title={t.title}
      sticky={busy} // the key that is being made is shown here alone
      onClose={onClose}
      onSubmit={() => void submit()}
      footer={
        <>
          <ApiCall method="post" path="/api/v1/preauthkey" body={body(end ?? now)} />
          <Button disabled={busy} onClick={onClose}>
            {text.common.cancel}
          </Button>
          <Button type="submit" look="primary" busy={busy} disabled={busy} why={why}>
            {t.submit}
          </Button>
        </>
      }
    >
      <Choices label={t.owner} choices={t.owners} value={form.owner} onChange={(owner) => set({ owner })} />
      {form.owner === "user" ? (
        <Field
          label={t.user}
          error={tried && missing && t.needsUser}
          hint={users?.items.length === 0 ? t.noUsers : undefined}
        >
          {(control) => (
            <Select {...control} className="w-full" value={form.user} onChange={(e) => set({ user: e.target.value })}>
              <option value="">{t.chooseUser}</option>
              {form.user !== "" && !users && <option value={form.user}>{printable(form.user)}</option>}
              {users?.items.map((each) => (
                <option key={each.id} value={each.name}>
                  {printable(each.name)}
                </option>
              ))}
            </Select>
          )}
        </Field>
      ) : (
        <TagField
          value={form.tags}
          onChange={(typed) => set({ tags: typed })}
          error={tried && tags.length === 0 ? t.needsTags : undefined}
        />
      )}
      <LifeField choices={t.lives} value={form.life} onChange={(life) => set({ life })} />
      <Option
        label={t.reusable}
        hint={t.reusableHint}
        checked={form.reusable}
        onChange={(reusable) => set({ reusable })}
      />
      <Option
        label={t.ephemeral}
        hint={t.ephemeralHint}
        checked={form.ephemeral}
        onChange={(ephemeral) => set({ ephemeral })}
      />
      {end !== null && isLongLived(form.reusable, end, now) && (
        <Warning>{powerful.length > 0 ? t.powerful(powerful) : t.long}</Warning>
      )}
      {!connected && <Warning>{text.common.offlineWrite}</Warning>}
      {error !== null && <Failure what={t.failed} error={error} />}
    </Dialog>
  );
}

function Option({
  label,
  hint,
  checked,
  onChange,
}: {
  label: string;
  hint: string;
  checked: boolean;
  onChange(on: boolean): void;
}) {
  return (
    <div className="text-ink">
      <Checkbox label={label} checked={checked} onChange={onChange} />
      <p className="pl-6 text-12 text-ink-2">{hint}</p>
    </div>
  );
}

const Warning = ({ children }: { children: string }) => (
  <div className="overflow-hidden rounded-md [&>div]:px-3">
    <Banner tone="warn">{children}</Banner>
  </div>
);

/** What failed, in the dialogue that tried it. */
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

/** The new key, once, with the command that uses it. */
function KeyReveal({ value, onClose }: { value: string; onClose(): void }) {
  const { coordinator } = useSession();
  const [system, setSystem] = useState<JoinSystem>("linux");
  return (
    <SecretReveal title={t.made} value={value} variable="TS_AUTHKEY" onClose={onClose}>
      <Choices<JoinSystem> label={t.system} choices={t.systems} value={system} onChange={setSystem} />
      <p>{t.run}</p>
      <Command value={joinCommand(system, coordinator.url, value)} what={t.command} />
    </SecretReveal>
  );
}
