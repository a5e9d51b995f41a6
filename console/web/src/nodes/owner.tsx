import { useState } from "react";
import { api, type Node, type User, useUsers } from "@/api";
import { compareText, printable, text } from "@/text";
import { owner as t } from "@/text/ownership";
import { ApiCall, ApiScript, Button, Confirm, Dialog, Field, Select, useStatus, Warning } from "@/ui";
import { reasons, useUndoReport } from "./bulk";
import { useSaveMember } from "./member";
import { NameList } from "./NameList";
import { useNodeWrites } from "./writes";

/** The call that gives a node to a user. */
export const moveCall = (node: Node, user: string) =>
  ({ method: "post", path: `/api/v1/node/${node.id}/user`, body: { user } }) as const;

/** Selects the future owner of nodes. `except` lists users who are not offered. The value is an ID. */
export function OwnerField({
  label = t.label,
  value,
  onChange,
  except,
  autoFocus,
}: {
  label?: string;
  value: string;
  onChange(id: string): void;
  except: readonly string[];
  autoFocus?: boolean;
}) {
  const users = useOtherUsers(except);
  return (
    <Field label={label} hint={users?.length === 0 ? t.noUsers : undefined}>
      {(control) => (
        <Select
          {...control}
          className="w-full"
          value={value}
          onChange={(event) => onChange(event.target.value)}
          autoFocus={autoFocus}
        >
          <option value="">{t.choose}</option>
          {users?.map((user) => (
            <option key={user.id} value={user.id}>
              {printable(user.name)}
            </option>
          ))}
        </Select>
      )}
    </Field>
  );
}

/** The users who can become owners, by name. */
export function useOtherUsers(except: readonly string[]): User[] | undefined {
  const { data } = useUsers();
  return data?.items.filter((user) => !except.includes(user.id)).sort((a, b) => compareText(a.name, b.name));
}

function useUser(id: string): User | undefined {
  const { data } = useUsers();
  return data?.items.find((user) => user.id === id);
}

export function OwnerDialog({ node, onClose }: { node: Node; onClose(): void }) {
  // Keep the owner from when the dialog opened, not what the stream has reported since.
  const [before] = useState(node.user);
  const [id, setId] = useState("");
  const user = useUser(id);
  const name = printable(node.givenName);
  const { submit, conflict } = useSaveMember({
    node,
    member: "user",
    value: user ?? null,
    ready: user !== undefined,
    call: (to, ifMatch) =>
      api.call("post", "/api/v1/node/{nodeId}/user", { params: { nodeId: node.id }, body: { user: to?.id }, ifMatch }),
    textOf: (of) => printable(of?.name ?? ""),
    words: {
      done: () => t.done(name, printable(user?.name ?? "")),
      undone: (was) => t.undone(name, printable(was?.name ?? "")),
      failed: () => t.failed(name),
    },
    onClose,
  });
  return (
    <Dialog
      title={t.title(name)}
      onClose={onClose}
      onSubmit={() => submit()}
      footer={
        <>
          <ApiCall {...moveCall(node, id)} />
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button type="submit" look="primary" disabled={!user}>
            {t.submit}
          </Button>
        </>
      }
    >
      {conflict}
      <p>{t.body}</p>
      <OwnerField value={id} onChange={setId} except={before ? [before.id] : []} autoFocus />
    </Dialog>
  );
}

/** Gives many nodes to one user. Tagged nodes have no owner and stay as they are. */
export function OwnersDialog({ nodes, onClose }: { nodes: readonly Node[]; onClose(): void }) {
  const writes = useNodeWrites();
  const status = useStatus();
  const reportUndo = useUndoReport(t);
  const [id, setId] = useState("");
  const [busy, setBusy] = useState(false);
  const user = useUser(id);
  const owned = nodes.filter((node) => node.tags.length === 0);
  const moving = owned.filter((node) => node.user?.id !== id);
  const tagged = nodes.length - owned.length;
  const owners = new Set(owned.map((node) => node.user?.id ?? ""));

  const send = async (which: readonly Node[], to: User) => {
    setBusy(true);
    try {
      const failed = await writes.move(which, to.id);
      const bad = new Set(failed.map(({ node }) => node.id));
      const moved = which.filter((node) => !bad.has(node.id));
      if (failed.length === 0)
        status.done(t.doneMany(moved.length, printable(to.name)), () => void reportUndo(writes.moveBack(moved, to.id)));
      else
        status.failed(text.nodes.many.partly(moved.length, failed.length), reasons(failed), {
          label: text.nodes.many.retry(failed.length),
          run: () =>
            void send(
              failed.map(({ node }) => node),
              to,
            ),
        });
    } catch (error) {
      status.failed(text.nodes.many.failed, error);
    }
    onClose();
  };
  return (
    <Confirm
      title={t.titleMany(nodes.length)}
      submit={t.submitMany(moving.length)}
      danger={false}
      busy={busy}
      disabled={!user || moving.length === 0}
      onSubmit={() => user && void send(moving, user)}
      onClose={onClose}
      call={moving.length > 0 && <ApiScript calls={moving.map((node) => moveCall(node, id))} />}
    >
      {owned.length > 0 && (
        <>
          <p>{t.bodyMany}</p>
          <NameList names={owned.map((node) => printable(node.givenName))} />
          {/* If all nodes have the same owner, that user cannot be the new one. */}
          <OwnerField value={id} onChange={setId} except={owners.size === 1 ? [...owners] : []} autoFocus />
        </>
      )}
      {tagged > 0 && <Warning>{owned.length > 0 ? t.tagged(tagged) : t.allTagged}</Warning>}
    </Confirm>
  );
}
