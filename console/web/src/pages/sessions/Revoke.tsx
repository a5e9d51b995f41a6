import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, keys, newRequestName, type PersonSession } from "@/api";
import { printable } from "@/text";
import { sessionsPage } from "@/text/settings";
import { ApiCall, Confirm, useStatus } from "@/ui";
import { sessionName } from "./facts";

const t = sessionsPage.revoke;

/** Ends a session. Revoking one's own signs the person out. */
export function Revoke({ session, onClose }: { session: PersonSession; onClose(): void }) {
  const client = useQueryClient();
  const status = useStatus();
  const [busy, setBusy] = useState(false);
  const name = sessionName(session);
  const submit = async () => {
    setBusy(true);
    try {
      await api.call("delete", "/api/v1/session/{id}", { params: { id: session.id }, once: newRequestName() });
      if (session.current) location.reload();
      else status.done(t.done(name));
    } catch (error) {
      status.failed(t.failed(name), error);
    }
    void client.invalidateQueries({ queryKey: keys.sessions });
    onClose();
  };
  return (
    <Confirm
      title={t.title(name)}
      submit={t.submit}
      word={session.current ? printable(session.user.name) : undefined}
      busy={busy}
      call={<ApiCall method="delete" path={`/api/v1/session/${session.id}`} />}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <p>{t.body}</p>
      {session.current && <p className="font-medium text-ink">{t.own}</p>}
    </Confirm>
  );
}
