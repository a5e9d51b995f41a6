import { useState } from "react";
import { api, newRequestName, type Role, useSession } from "@/api";
import { type Life, LifeField, NewKeyDialog } from "@/keys";
import { apiKeys } from "@/text/settings";
import { Choices, Command, Field, Input, SecretReveal, Select } from "@/ui";
import { type Grant, type Grants, mostOf, nouns, scopesOf } from "./facts";

const t = apiKeys.create;
const roles = apiKeys.roles;

/** The properties of a new key. */
export interface NewKey {
  role: Role;
  scopes: string[];
  comment: string;
  expiration: string;
}

/** Creates a key and returns its only copy. */
export async function createKey(body: NewKey): Promise<string> {
  return (await api.call("post", "/api/v1/apikey", { body, once: newRequestName() })).data.apiKey;
}

export const usualLife: Life = { choice: "8760", count: "180", unit: "days" };

const tooLong = (comment: string) => new TextEncoder().encode(comment).length > 120;

export function CommentField({ value, onChange }: { value: string; onChange(value: string): void }) {
  return (
    <Field label={t.comment} hint={t.commentHint} error={tooLong(value) && t.commentLong}>
      {(control) => <Input {...control} value={value} onChange={(e) => onChange(e.target.value)} autoFocus />}
    </Field>
  );
}

/** Asks for the options of an API key, creates it, and shows it once. */
export function CreateApiKey({ onClose }: { onClose(): void }) {
  const { key: own } = useSession();
  const [made, setMade] = useState<string | null>(null);
  const [role, setRole] = useState<Role>("admin");
  const [comment, setComment] = useState("");
  const [life, setLife] = useState(usualLife);
  const [reach, setReach] = useState<"all" | "some">(own.scopes.length > 0 ? "some" : "all");
  const [grants, setGrants] = useState<Grants>({});

  if (made !== null) return <ApiKeyReveal title={t.made} value={made} onClose={onClose} />;
  const scopes = reach === "some" ? scopesOf(grants) : [];
  const missing = reach === "some" && scopes.length === 0;
  return (
    <NewKeyDialog
      words={t}
      right="apikeys:write"
      path="/api/v1/apikey"
      body={(at) => ({ role, scopes, comment: comment.trim(), expiration: new Date(at).toISOString() })}
      life={life}
      complete={!missing && !tooLong(comment)}
      create={createKey}
      onMade={setMade}
      onClose={onClose}
    >
      {(tried) => (
        <>
          <CommentField value={comment} onChange={setComment} />
          <LifeField choices={t.lives} value={life} onChange={setLife} />
          <p className="text-12">{t.recommended}</p>
          <div className="space-y-1.5">
            <Choices<Role> label={t.role} choices={roles} value={role} onChange={setRole} />
            <p className="text-12">{apiKeys.roleHints[role]}</p>
          </div>
          {own.scopes.length === 0 && (
            <Choices
              label={t.reach}
              choices={t.reaches}
              value={reach}
              onChange={(next) => setReach(next as "all" | "some")}
            />
          )}
          {reach === "some" && (
            <ScopesField role={role} own={own.scopes} grants={grants} onChange={setGrants} missing={tried && missing} />
          )}
        </>
      )}
    </NewKeyDialog>
  );
}

function ScopesField({
  role,
  own,
  grants,
  onChange,
  missing,
}: {
  role: Role;
  own: readonly string[];
  grants: Grants;
  onChange(grants: Grants): void;
  missing: boolean;
}) {
  return (
    <>
      <div className="grid grid-cols-2 gap-x-4 gap-y-2 max-md:grid-cols-1">
        {nouns
          .filter((noun) => mostOf(noun, own, role) !== "")
          .map((noun) => {
            const most = mostOf(noun, own, role);
            const choices: Grant[] = most === "full" ? ["", "read", "full"] : ["", "read"];
            return (
              // biome-ignore lint/a11y/noLabelWithoutControl: the list of choices inside is its control
              <label key={noun} className="flex items-center justify-between gap-2 whitespace-nowrap text-ink">
                {t.nouns[noun]}
                <Select
                  className="w-24 shrink-0"
                  value={grants[noun] === "full" && most === "read" ? "read" : (grants[noun] ?? "")}
                  onChange={(e) => onChange({ ...grants, [noun]: e.target.value as Grant })}
                >
                  {choices.map((grant) => (
                    <option key={grant} value={grant}>
                      {t.rights[grant]}
                    </option>
                  ))}
                </Select>
              </label>
            );
          })}
      </div>
      {missing && (
        <p role="alert" className="text-12 text-bad">
          {t.scopesNeeded}
        </p>
      )}
    </>
  );
}

/** A new API key, shown once, with a command to try it. */
export function ApiKeyReveal({
  title,
  value,
  onClose,
}: {
  title: string;
  value: string;
  onClose(stored: boolean): void;
}) {
  const { coordinator } = useSession();
  return (
    <SecretReveal title={title} value={value} variable="FAIRLEAD_CLI_API_KEY" onClose={onClose}>
      <p>{t.use}</p>
      <Command
        value={`FAIRLEAD_CLI_SERVER=${coordinator.url} FAIRLEAD_CLI_API_KEY=${value} fairlead whoami`}
        what={t.command}
      />
    </SecretReveal>
  );
}
