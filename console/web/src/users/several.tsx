import { useState } from "react";
import type { User } from "@/api";
import { NameList } from "@/nodes/NameList";
import { printable } from "@/text";
import { userWords } from "@/text/users";
import { ApiScript, Confirm, useStatus } from "@/ui";
import { type Decision, useUserWrites } from "./writes";

const paths = { approve: "approve", suspend: "suspend", keep: "restore" };

/** Decides about users, one after the other, and reports about whom that failed and why. */
export function DecideDialog({ what, users, onClose }: { what: Decision; users: readonly User[]; onClose(): void }) {
  const t = userWords.decide[what];
  const writes = useUserWrites();
  const status = useStatus();
  const [busy, setBusy] = useState(false);
  const decide = async (which: readonly User[]) => {
    setBusy(true);
    const { failed, kept } = await writes.decide(what, which);
    const done = t.done(which.length);
    if (failed.length === 0) status.done(kept > 0 ? `${done}. ${userWords.remove.kept(kept)}` : done);
    else
      status.failed(
        userWords.decide.partly(which.length - failed.length, failed.length),
        failed
          .slice(0, 3)
          .map(({ user, why }) => `${printable(user.name)}: ${why}`)
          .join(" · "),
        { label: userWords.remove.retry(failed.length), run: () => void decide(failed.map(({ user }) => user)) },
      );
    onClose();
  };
  return (
    <Confirm
      title={t.title(users.length)}
      submit={t.submit(users.length)}
      danger={what === "suspend"}
      busy={busy}
      call={
        <ApiScript calls={users.map(({ id }) => ({ method: "post", path: `/api/v1/user/${id}/${paths[what]}` }))} />
      }
      onSubmit={() => void decide(users)}
      onClose={onClose}
    >
      <NameList names={users.map((user) => printable(user.email || user.name))} />
      <p>{t.body}</p>
      <p>{t.otherwise}</p>
    </Confirm>
  );
}
