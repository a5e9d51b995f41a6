import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, keys, newRequestName, type Passkey, type User } from "@/api";
import { printable } from "@/text";
import { userWords } from "@/text/users";
import { ApiCall, Confirm, useStatus } from "@/ui";

const t = userWords.passkeys;

const passkeysQuery = (user: string) =>
  queryOptions({
    queryKey: keys.passkeys(user),
    queryFn: async ({ signal }) => (await api.get("/api/v1/passkey", { query: { user }, signal })).passkeys,
  });

/** The passkeys with which a user signs in. A user has at most 20. */
export const usePasskeys = (user: User) => useQuery(passkeysQuery(user.id)).data;

export function DeletePasskey({ passkey, last, onClose }: { passkey: Passkey; last: boolean; onClose(): void }) {
  const client = useQueryClient();
  const status = useStatus();
  const [busy, setBusy] = useState(false);
  const name = printable(passkey.user.name);
  const send = async () => {
    setBusy(true);
    try {
      await api.call("delete", "/api/v1/passkey/{id}", { params: { id: passkey.id }, once: newRequestName() });
      status.done(t.done(name));
    } catch (error) {
      status.failed(t.failed(name), error);
    }
    void client.invalidateQueries({ queryKey: keys.passkeys(passkey.user.id) });
    onClose();
  };
  return (
    <Confirm
      title={t.title(name)}
      submit={t.submit}
      busy={busy}
      call={<ApiCall method="delete" path={`/api/v1/passkey/${passkey.id}`} />}
      onSubmit={() => void send()}
      onClose={onClose}
    >
      <p>{t.body}</p>
      {last && <p className="font-medium text-ink">{t.last}</p>}
      <p>{t.stay}</p>
    </Confirm>
  );
}
