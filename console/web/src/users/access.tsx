import { useState } from "react";
import { type User, useAllNodes } from "@/api";
import { NameList } from "@/nodes/NameList";
import { printable, text } from "@/text";
import { userWords } from "@/text/users";
import { ApiCall, Checkbox, Confirm, useStatus, useWrites } from "@/ui";
import { nodesOf, taggedBy } from "./facts";
import { useUserWrites } from "./writes";

/** Sends a change of a user's access once, and reports the outcome. */
function useChange(onClose: () => void) {
  const status = useStatus();
  const [busy, setBusy] = useState(false);
  const send = async (call: () => Promise<string>, failed: string) => {
    setBusy(true);
    try {
      status.done(await call());
    } catch (error) {
      status.failed(failed, error);
    }
    onClose();
  };
  return { busy, send };
}

export function ApproveDialog({ user, onClose }: { user: User; onClose(): void }) {
  const t = userWords.approve;
  const writes = useUserWrites();
  const { busy, send } = useChange(onClose);
  const name = printable(user.name);
  const approve = async () => {
    await writes.approve(user);
    return t.done(name);
  };
  return (
    <Confirm
      title={t.title(name)}
      submit={t.submit(name)}
      danger={false}
      busy={busy}
      call={<ApiCall method="post" path={`/api/v1/user/${user.id}/approve`} />}
      onSubmit={() => void send(approve, t.failed(name))}
      onClose={onClose}
    >
      {user.email && <p>{t.account(printable(user.email))}</p>}
      <p>{t.body}</p>
      <p>{t.reject}</p>
    </Confirm>
  );
}

export function SuspendDialog({ user, onClose }: { user: User; onClose(): void }) {
  const t = userWords.suspend;
  const writes = useUserWrites();
  const { busy, send } = useChange(onClose);
  const { data: nodes } = useAllNodes();
  const { offered } = useWrites("nodes:write");
  const [too, setToo] = useState(false);
  const name = printable(user.name);
  const count = nodes ? nodesOf(nodes.items, user).length : user.nodeCount;
  const tagged = nodes ? taggedBy(nodes.items, user) : [];
  const suspend = async () => {
    const kept = await writes.suspend(user, too);
    return kept > 0 ? `${t.done(name)}. ${userWords.remove.kept(kept)}` : t.done(name);
  };
  return (
    <Confirm
      title={t.title(name)}
      submit={t.submit(name)}
      busy={busy}
      call={<ApiCall method="post" path={`/api/v1/user/${user.id}/suspend${too ? "?deleteTagged=true" : ""}`} />}
      onSubmit={() => void send(suspend, t.failed(name))}
      onClose={onClose}
    >
      <p>{t.body}</p>
      <ul className="list-disc space-y-1 pl-5">
        <li>{t.signIn}</li>
        <li>{t.keys}</li>
        <li>{count > 0 ? t.nodes(count) : t.noNodes}</li>
      </ul>
      <p>{t.back}</p>
      {tagged.length > 0 && (
        <div className="space-y-2">
          <p>{t.tagged(tagged.length)}</p>
          <NameList names={tagged.map((node) => printable(node.givenName))} />
          {offered && <Checkbox checked={too} onChange={setToo} label={userWords.remove.taggedToo(tagged.length)} />}
        </div>
      )}
    </Confirm>
  );
}

export function RestoreDialog({ user, onClose }: { user: User; onClose(): void }) {
  const t = userWords.restore;
  const writes = useUserWrites();
  const { busy, send } = useChange(onClose);
  const name = printable(user.name);
  const restore = async () => {
    await writes.restore(user);
    return t.done(name);
  };
  return (
    <Confirm
      title={t.title(name)}
      submit={t.submit(name)}
      cancel={text.common.cancel}
      danger={false}
      busy={busy}
      call={<ApiCall method="post" path={`/api/v1/user/${user.id}/restore`} />}
      onSubmit={() => void send(restore, t.failed(name))}
      onClose={onClose}
    >
      <p>{t.body}</p>
      {user.suspendedBy && user.suspendedBy !== "admin" && <p>{t.provider}</p>}
    </Confirm>
  );
}
