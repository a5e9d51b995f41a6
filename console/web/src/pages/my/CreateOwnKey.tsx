import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, keys, newRequestName } from "@/api";
import { isTooLong, KeyReveal, NewKeyDialog } from "@/keys";
import { text } from "@/text";
import { myWords } from "@/text/my";
import { Checkbox, Choices, Field, Input } from "@/ui";

const t = myWords.create;
const words = text.keys.create;

/** Creates a pre-auth key for devices of the person, and shows it once. Members may create only short-lived keys. */
export function CreateOwnKey({ person, onClose }: { person: string; onClose(): void }) {
  const client = useQueryClient();
  const [made, setMade] = useState<string | null>(null);
  const [description, setDescription] = useState("");
  const [choice, setChoice] = useState("1");
  const [reusable, setReusable] = useState(false);
  const [ephemeral, setEphemeral] = useState(false);
  if (made !== null) return <KeyReveal value={made} onClose={onClose} />;
  const tooLong = isTooLong(description.trim());
  return (
    <NewKeyDialog
      words={t}
      right="preauthkeys:read"
      path="/api/v1/preauthkey"
      life={{ choice, count: "1", unit: "hours" }}
      complete={!tooLong}
      body={(expires) => ({
        user: person,
        description: description.trim() || undefined,
        reusable,
        ephemeral,
        preApproved: false,
        expiration: new Date(expires).toISOString(),
      })}
      create={async (body) => {
        const { data } = await api.call("post", "/api/v1/preauthkey", { body, once: newRequestName() });
        void client.invalidateQueries({ queryKey: keys.preAuthKeys });
        return data.preAuthKey.key;
      }}
      onMade={setMade}
      onClose={onClose}
    >
      {() => (
        <>
          <p>{t.body}</p>
          <Field label={words.description} error={tooLong ? words.descriptionLong : undefined}>
            {(control) => <Input {...control} value={description} onChange={(e) => setDescription(e.target.value)} />}
          </Field>
          <Choices label={t.life} choices={t.lives} value={choice} onChange={setChoice} />
          <Checkbox label={words.reusable} about={words.reusableHint} checked={reusable} onChange={setReusable} />
          <Checkbox label={words.ephemeral} about={words.ephemeralHint} checked={ephemeral} onChange={setEphemeral} />
        </>
      )}
    </NewKeyDialog>
  );
}
