import { useState } from "react";
import { api, newRequestName, useCan, useSession, useUsers } from "@/api";
import { printable, text } from "@/text";
import { Checkbox, Choices, Command, Field, Input, SecretReveal, Select, useNow, useWrites, Warning } from "@/ui";
import { isLongLived, isTooLong, notATag, tagsOf } from "./facts";
import { type JoinSystem, joinCommand } from "./join";
import { LifeField } from "./LifeField";
import { endOf, type Life } from "./life";
import { NewKeyDialog } from "./NewKeyDialog";
import { usePolicyTags } from "./policyTags";
import { TagField } from "./TagField";

const t = text.keys.create;

interface Form {
  description: string;
  owner: "user" | "tags";
  user: string;
  tags: string;
  life: Life;
  reusable: boolean;
  ephemeral: boolean;
  preApproved: boolean;
}

/** Asks for the options of a pre-auth key, creates it, and shows it once. */
export function CreateKeyDialog({
  onClose,
  user,
  tags,
}: {
  onClose(): void;
  /** The name of the user who will own the nodes. */
  user?: string;
  tags?: readonly string[];
}) {
  const [made, setMade] = useState<string | null>(null);
  if (made !== null) return <KeyReveal value={made} onClose={onClose} />;
  return (
    <KeyForm
      start={{
        description: "",
        owner: user === undefined && tags ? "tags" : "user",
        user: user ?? "",
        tags: tags?.map((tag) => `${tag} `).join("") ?? "",
        life: { choice: "1", count: "2", unit: "days" },
        reusable: false,
        ephemeral: false,
        preApproved: false,
      }}
      onMade={setMade}
      onClose={onClose}
    />
  );
}

function KeyForm({ start, onMade, onClose }: { start: Form; onMade(key: string): void; onClose(): void }) {
  const [form, setForm] = useState(start);
  const set = (change: Partial<Form>) => setForm((before) => ({ ...before, ...change }));
  const { now: connected } = useWrites("preauthkeys:write");
  const mayApprove = useCan()("nodes:write");

  const tags = form.owner === "tags" ? tagsOf(form.tags) : [];
  const missing = form.owner === "user" ? form.user === "" : tags.length === 0 || notATag(tags) !== undefined;
  const tooLong = isTooLong(form.description.trim());
  const body = (expires: number) => ({
    description: form.description.trim() || undefined,
    user: form.owner === "user" ? form.user : undefined,
    aclTags: form.owner === "tags" ? tags : undefined,
    reusable: form.reusable,
    ephemeral: form.ephemeral,
    preApproved: form.preApproved,
    expiration: new Date(expires).toISOString(),
  });

  return (
    <NewKeyDialog
      words={t}
      right="preauthkeys:write"
      path="/api/v1/preauthkey"
      body={body}
      life={form.life}
      complete={!missing && !tooLong}
      create={async (body) => {
        const { data } = await api.call("post", "/api/v1/preauthkey", { body, once: newRequestName() });
        return data.preAuthKey.key;
      }}
      onMade={onMade}
      onClose={onClose}
    >
      {(tried) => (
        <>
          <Field label={t.description} hint={t.descriptionHint} error={tooLong ? t.descriptionLong : undefined}>
            {(control) => (
              <Input
                {...control}
                value={form.description}
                onChange={(event) => set({ description: event.target.value })}
              />
            )}
          </Field>
          <Choices label={t.owner} choices={t.owners} value={form.owner} onChange={(owner) => set({ owner })} />
          {form.owner === "user" ? (
            <UserField value={form.user} onChange={(user) => set({ user })} missing={tried && missing} />
          ) : (
            <TagField
              value={form.tags}
              onChange={(typed) => set({ tags: typed })}
              error={tried && tags.length === 0 ? t.needsTags : undefined}
            />
          )}
          <LifeField choices={t.lives} value={form.life} onChange={(life) => set({ life })} />
          <Checkbox
            label={t.reusable}
            about={t.reusableHint}
            checked={form.reusable}
            onChange={(reusable) => set({ reusable })}
          />
          <Checkbox
            label={t.ephemeral}
            about={t.ephemeralHint}
            checked={form.ephemeral}
            onChange={(ephemeral) => set({ ephemeral })}
          />
          {mayApprove && (
            <Checkbox
              label={t.preApproved}
              about={t.preApprovedHint}
              checked={form.preApproved}
              onChange={(preApproved) => set({ preApproved })}
            />
          )}
          <LongLived form={form} tags={tags} />
          {!connected && <Warning>{text.common.offlineWrite}</Warning>}
        </>
      )}
    </NewKeyDialog>
  );
}

function UserField({ value, onChange, missing }: { value: string; onChange(user: string): void; missing: boolean }) {
  const { data: users } = useUsers();
  return (
    <Field label={t.user} error={missing && t.needsUser} hint={users?.items.length === 0 ? t.noUsers : undefined}>
      {(control) => (
        <Select {...control} className="w-full" value={value} onChange={(e) => onChange(e.target.value)}>
          <option value="">{t.chooseUser}</option>
          {value !== "" && !users && <option value={value}>{printable(value)}</option>}
          {users?.items.map((each) => (
            <option key={each.id} value={each.name}>
              {printable(each.name)}
            </option>
          ))}
        </Select>
      )}
    </Field>
  );
}

/** Warns about a key that many nodes could join with for a long time, especially with tags that have wide access. */
function LongLived({ form, tags }: { form: Form; tags: readonly string[] }) {
  const now = useNow();
  const policy = usePolicyTags();
  const end = endOf(form.life, now);
  if (end === null || !isLongLived(form.reusable, end, now)) return null;
  const powerful = tags.filter((tag) => policy?.powerful.includes(tag));
  return <Warning>{powerful.length > 0 ? t.powerful(powerful) : t.long}</Warning>;
}

/** The new key, shown once, with the command that uses it. */
export function KeyReveal({ value, onClose }: { value: string; onClose(): void }) {
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
