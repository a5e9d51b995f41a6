import { useState } from "react";
import { api, newRequestName, type User } from "@/api";
import { type Life, LifeField, NewKeyDialog } from "@/keys";
import { printable } from "@/text";
import { userWords } from "@/text/users";
import { SecretReveal } from "@/ui";

const t = userWords.invite;
const week: Life = { choice: "168", count: "14", unit: "days" };

/** Creates an invitation with which a person creates a passkey, and shows its link once. */
export function InviteDialog({ user, onClose }: { user: User; onClose(): void }) {
  const [link, setLink] = useState<string | null>(null);
  const [life, setLife] = useState(week);
  const name = printable(user.name);
  if (link !== null)
    return (
      <SecretReveal title={t.made(name)} value={link} words={t.secret} onClose={onClose}>
        <p>{t.send(name)}</p>
      </SecretReveal>
    );
  return (
    <NewKeyDialog
      words={{ title: t.title(name), submit: t.submit, failed: t.failed(name) }}
      right="users:write"
      path={`/api/v1/user/${user.id}/invitation`}
      body={(at) => ({ expiration: new Date(at).toISOString() })}
      life={life}
      complete
      create={async (body) =>
        (
          await api.call("post", "/api/v1/user/{id}/invitation", {
            params: { id: user.id },
            body,
            once: newRequestName(),
          })
        ).data.link
      }
      onMade={setLink}
      onClose={onClose}
    >
      {() => (
        <>
          <p>{t.body(name)}</p>
          <LifeField choices={t.lives} value={life} onChange={setLife} />
          <p>{t.replaces}</p>
        </>
      )}
    </NewKeyDialog>
  );
}
