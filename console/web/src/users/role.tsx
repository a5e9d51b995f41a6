import { useState } from "react";
import { type User, useSession } from "@/api";
import { Failure } from "@/keys";
import { printable } from "@/text";
import { userWords } from "@/text/users";
import { ApiCall, Choices, Confirm, useStatus, Warning } from "@/ui";
import { isLocal, type PersonRole, roleSource } from "./facts";
import { useUserWrites } from "./writes";

const t = userWords.role;
type Choice = keyof typeof t.choices;

/** Assigns a role to a user. A refusal stays in the dialog, because it says what to do first. */
export function RoleDialog({ user, onClose }: { user: User; onClose(): void }) {
  const writes = useUserWrites();
  const status = useStatus();
  const { person } = useSession();
  const [role, setRole] = useState<Choice>((user.assignedRole as PersonRole | undefined) ?? "default");
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>(null);
  const name = printable(user.name);
  const send = async () => {
    setBusy(true);
    setRefused(null);
    try {
      const now = await writes.setRole(user, role);
      status.done(t.done(name, roleSource(now)));
      onClose();
    } catch (error) {
      setBusy(false);
      setRefused(error);
    }
  };
  return (
    <Confirm
      title={t.title(name)}
      submit={t.submit}
      danger={false}
      busy={busy}
      disabled={role === (user.assignedRole ?? "default")}
      error={refused !== null && <Failure what={t.failed(name)} error={refused} />}
      call={<ApiCall method="put" path={`/api/v1/user/${user.id}/role`} body={{ role }} />}
      onSubmit={() => void send()}
      onClose={onClose}
    >
      <p>{t.now(roleSource(user))}</p>
      <div className="space-y-1.5">
        <Choices<Choice> label={t.label} choices={t.choices} value={role} onChange={setRole} />
        <p className="text-12" aria-live="polite">
          {role === "default" && isLocal(user) ? t.defaultLocal : t.hints[role]}
        </p>
      </div>
      <p>{t.atOnce}</p>
      {person === user.name && role !== "admin" && <Warning>{t.own}</Warning>}
    </Confirm>
  );
}
