import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useLastChange } from "@/activity/lastChange";
import {
  currentOf,
  type IfMatch,
  type Node,
  type Passkey,
  preAuthKeysQuery,
  type User,
  undone,
  useAllNodes,
  useCan,
  useEtag,
  useUsers,
} from "@/api";
import { CreateKeyDialog, keyState } from "@/keys";
import { reasons } from "@/nodes/bulk";
import { Choice } from "@/nodes/conflict";
import { NameList } from "@/nodes/NameList";
import { moveCall, OwnerField, OwnersDialog, useOtherUsers } from "@/nodes/owner";
import { useNodeWrites } from "@/nodes/writes";
import { printable, text } from "@/text";
import { owner as ownerWords } from "@/text/ownership";
import { userWords } from "@/text/users";
import {
  ApiCall,
  ApiScript,
  Button,
  Checkbox,
  Choices,
  Dialog,
  Field,
  Input,
  useNow,
  useStatus,
  useWrites,
} from "@/ui";
import { ApproveDialog, RestoreDialog, SuspendDialog } from "./access";
import { CreateUserDialog } from "./CreateUserDialog";
import { isUserName, nodesOf, taggedBy } from "./facts";
import { InviteDialog } from "./invite";
import { MentionList } from "./MentionList";
import { DeletePasskey } from "./passkeys";
import { RoleDialog } from "./role";
import { DecideDialog } from "./several";
import { usePolicyMentions } from "./usePolicyMentions";
import { type Decision, removal, useUserWrites } from "./writes";

/** An action on users that a person starts; a dialog asks for further input. */
export type UserAction =
  | { name: "create" }
  | { name: "rename" | "key" | "move" | "approve" | "suspend" | "restore" | "role" | "invite"; user: User }
  | { name: "decide"; what: Decision; users: readonly User[] }
  | { name: "deletePasskey"; passkey: Passkey; last: boolean }
  | { name: "delete"; users: readonly User[]; onDone?(): void };

export default function UserDialogs({ action, onClose }: { action: UserAction; onClose(): void }) {
  switch (action.name) {
    case "create":
      return <CreateUserDialog inviting onClose={onClose} />;
    case "rename":
      return <Rename user={action.user} onClose={onClose} />;
    case "key":
      return <CreateKeyDialog user={action.user.name} onClose={onClose} />;
    case "move":
      return <Move user={action.user} onClose={onClose} />;
    case "approve":
      return <ApproveDialog user={action.user} onClose={onClose} />;
    case "suspend":
      return <SuspendDialog user={action.user} onClose={onClose} />;
    case "restore":
      return <RestoreDialog user={action.user} onClose={onClose} />;
    case "role":
      return <RoleDialog user={action.user} onClose={onClose} />;
    case "invite":
      return <InviteDialog user={action.user} onClose={onClose} />;
    case "decide":
      return <DecideDialog what={action.what} users={action.users} onClose={onClose} />;
    case "deletePasskey":
      return <DeletePasskey passkey={action.passkey} last={action.last} onClose={onClose} />;
    default:
      return <Delete users={action.users} onDone={action.onDone} onClose={onClose} />;
  }
}

function Rename({ user, onClose }: { user: User; onClose(): void }) {
  const t = userWords.rename;
  const writes = useUserWrites();
  const status = useStatus();
  const etag = useEtag(() => writes.etag(user));
  const { data } = useUsers();
  const mentions = usePolicyMentions();
  const [typed, setTyped] = useState(user.name);
  const [theirs, setTheirs] = useState<string | null>(null);
  const name = typed.trim();
  const clash = data?.items.some((other) => other.id !== user.id && other.name.toLowerCase() === name.toLowerCase());
  const problem = clash ? userWords.create.taken(printable(name)) : isUserName(name) ? undefined : userWords.create.bad;
  // References by e-mail address stay valid after a rename.
  const named = useMemo(() => mentions?.all({ name: user.name, email: "" }) ?? [], [mentions, user.name]);
  const changes = name.toLowerCase() !== user.name.toLowerCase();

  const send = (ifMatch: IfMatch) => {
    if (problem) return;
    if (name === user.name) return onClose();
    const before = user.name;
    writes.rename(user, name, ifMatch).then(
      (left) => {
        onClose();
        const back = (match: string | null) => writes.rename({ ...user, name }, before, match);
        status.done(t.done(printable(before), name), () =>
          undone<User>(left, back, (now) => now.name === name).then(
            () => status.done(t.undone(printable(before))),
            (error) => status.failed(t.failed(name), error),
          ),
        );
      },
      (error) => {
        const now = currentOf<User>(error);
        if (now && now.name !== before) return setTheirs(now.name);
        if (now) return send(null);
        onClose();
        status.failed(t.failed(printable(before)), error);
      },
    );
  };
  return (
    <Dialog
      title={t.title(printable(user.name))}
      onClose={onClose}
      onSubmit={() => send(etag)}
      footer={
        <>
          <ApiCall method="post" path={`/api/v1/user/${user.id}/rename/${encodeURIComponent(name)}`} />
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button type="submit" look="primary" disabled={Boolean(problem)}>
            {t.submit}
          </Button>
        </>
      }
    >
      {theirs !== null && (
        <Renamed user={user} theirs={printable(theirs)} onMine={() => send(null)} onTheirs={onClose} />
      )}
      <Field label={userWords.create.name} error={problem} hint={userWords.create.nameHint}>
        {(control) => (
          <Input
            {...control}
            mono
            value={typed}
            maxLength={255}
            onChange={(e) => setTyped(e.target.value)}
            autoFocus
            onFocus={(e) => e.target.select()}
          />
        )}
      </Field>
      {changes && named.length > 0 && (
        <div>
          <p>{t.named(named.length)}</p>
          <MentionList mentions={named} />
        </div>
      )}
    </Dialog>
  );
}

/** Shown if somebody else renamed the user first. */
function Renamed({ user, theirs, onMine, onTheirs }: { user: User; theirs: string; onMine(): void; onTheirs(): void }) {
  const t = userWords.rename;
  const last = useLastChange({ kind: "user", object: user.id, members: ["name"] });
  return (
    <div role="alert" className="space-y-2 rounded-lg border border-line-strong p-3">
      <p className="font-medium text-ink">{last ? t.conflictBy(last.who, last.when, theirs) : t.conflict(theirs)}</p>
      <Choice onMine={onMine} onTheirs={onTheirs} />
    </div>
  );
}

/** Gives all nodes of a user to another one. */
function Move({ user, onClose }: { user: User; onClose(): void }) {
  const { data } = useAllNodes();
  return data && <OwnersDialog nodes={nodesOf(data.items, user)} onClose={onClose} />;
}

/**
 * What is lost with users: their nodes, their usable keys, and the effect of policy entries that name them; and what
 * stays: the tagged nodes that they added.
 */
function useLosses(users: readonly User[]) {
  const can = useCan();
  const now = useNow();
  const { data: nodes } = useAllNodes();
  const { data: keys } = useQuery({ ...preAuthKeysQuery, enabled: can("preauthkeys:read") });
  const mentions = usePolicyMentions();
  return useMemo(() => {
    const owned = nodes ? users.flatMap((user) => nodesOf(nodes.items, user)) : undefined;
    const ids = new Set(users.map((user) => user.id));
    return {
      count: owned?.length ?? users.reduce((sum, user) => sum + user.nodeCount, 0),
      /** Undefined while they are not known. */
      nodes: owned,
      names: owned?.map((node) => printable(node.givenName)) ?? [],
      tagged: nodes
        ? users.flatMap((user) => taggedBy(nodes.items, user)).map((node) => printable(node.givenName))
        : [],
      keys:
        keys?.items.filter((key) => key.user && ids.has(key.user.id) && keyState(key, now) === "usable").length ?? 0,
      mentions: mentions ? users.flatMap((user) => mentions.all(user)) : [],
    };
  }, [users, nodes, keys, mentions, now]);
}

/** Deletes users, optionally after moving their nodes to somebody else. */
function useRemoval(users: readonly User[], onClose: () => void, onDone?: () => void) {
  const t = userWords.remove;
  const writes = useUserWrites();
  const nodeWrites = useNodeWrites();
  const status = useStatus();
  const [busy, setBusy] = useState(false);
  const name = users.length === 1 && users[0] ? printable(users[0].name) : undefined;

  const remove = async (which: readonly User[], tagged: boolean) => {
    const { failed, kept } = await writes.remove(which, tagged);
    const done = name ? t.done(name) : t.doneMany(which.length);
    if (failed.length === 0) status.done(kept > 0 ? `${done}. ${t.kept(kept)}` : done);
    else
      status.failed(
        t.partly(which.length - failed.length, failed.length),
        failed
          .slice(0, 3)
          .map(({ user, why }) => `${printable(user.name)}: ${why}`)
          .join(" · "),
        {
          label: t.retry(failed.length),
          run: () =>
            send(
              failed.map(({ user }) => user),
              tagged,
            ),
        },
      );
    if (failed.length < which.length) onDone?.();
  };

  /** Moves the nodes to their new owner. Returns whether the users can now be deleted without losing a node. */
  const emptied = async (nodes: readonly Node[], to: string): Promise<boolean> => {
    const failed = await nodeWrites.move(nodes, to);
    if (failed.length > 0) {
      status.failed(ownerWords.notMoved(failed.length), reasons(failed));
      return false;
    }
    // A device may have joined in the meantime. Deleting its owner would delete it.
    for (const user of users) {
      const left = await writes.nodeCount(user);
      if (left === 0) continue;
      status.failed(ownerWords.left(printable(user.name), left), "");
      return false;
    }
    return true;
  };

  const send = async (which: readonly User[], tagged: boolean, move?: { nodes: readonly Node[]; to: string }) => {
    setBusy(true);
    try {
      if (!move || (await emptied(move.nodes, move.to))) await remove(which, tagged);
    } catch (error) {
      status.failed(name ? t.failed(name) : t.failedMany, error);
    }
    onClose();
  };
  return { busy, send };
}

function Delete({ users, onDone, onClose }: { users: readonly User[]; onDone?(): void; onClose(): void }) {
  const t = userWords.remove;
  const losses = useLosses(users);
  const { busy, send } = useRemoval(users, onClose, onDone);
  const [fate, setFate] = useState<Fate>("delete");
  const [to, setTo] = useState("");
  const [too, setToo] = useState(false);
  const [tagged, setTagged] = useState(false);
  const [typed, setTyped] = useState("");
  const only = users.length === 1 ? users[0] : undefined;
  const name = only && printable(only.name);
  const nodes = useWrites("nodes:write");
  const holds = losses.count > 0;
  const moving = holds && fate === "move" ? (losses.nodes ?? []) : [];
  const loses = holds && fate === "delete";
  const word = loses && only ? only.name : users.length >= 5 || (loses && !only) ? String(users.length) : undefined;
  const settled = !holds || (fate === "move" ? to !== "" && moving.length > 0 : too);
  const ready = settled && (word === undefined || typed.trim() === word) && !busy;

  return (
    <Dialog
      title={name ? t.title(name) : t.titleMany(users.length)}
      onClose={onClose}
      onSubmit={() => ready && void send(users, tagged, moving.length > 0 ? { nodes: moving, to } : undefined)}
      footer={
        <>
          <ApiScript
            calls={[
              ...moving.map((node) => moveCall(node, to)),
              { method: "post", path: "/api/v1/user/bulk", body: removal(users, tagged) },
            ]}
          />
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button type="submit" look="danger" disabled={!ready} busy={busy}>
            {name ? t.submit(name) : t.submitMany(users.length)}
          </Button>
        </>
      }
    >
      {holds ? (
        <>
          <p>
            <span className="font-medium text-ink">{name ? t.owns(name, losses.count) : t.ownMany(losses.count)}</span>{" "}
            {fate === "move" ? ownerWords.stay : t.nodesGo}
          </p>
          {losses.names.length > 0 && <NameList names={losses.names} />}
          {nodes.offered && losses.nodes && (
            <NodesFate users={users} fate={fate} onFate={setFate} to={to} onTo={setTo} />
          )}
        </>
      ) : (
        <p>{name ? t.bare(name) : t.bareMany}</p>
      )}
      {!only && <NameList names={users.map((user) => printable(user.name))} />}
      {losses.keys > 0 && <p>{t.keysGo(losses.keys)}</p>}
      {losses.mentions.length > 0 && (
        <div>
          <p>{only ? t.named(losses.mentions.length) : t.namedMany(losses.mentions.length)}</p>
          <MentionList mentions={losses.mentions} />
        </div>
      )}
      {losses.tagged.length > 0 && (
        <div className="space-y-2">
          <p>{only ? t.brought(losses.tagged.length) : t.broughtMany(losses.tagged.length)}</p>
          <NameList names={losses.tagged} />
          {nodes.offered && (
            <Checkbox checked={tagged} onChange={setTagged} label={t.taggedToo(losses.tagged.length)} />
          )}
        </div>
      )}
      {loses && <Checkbox checked={too} onChange={setToo} label={t.too(losses.count)} />}
      {word !== undefined && settled && (
        <Field label={text.common.typeToConfirm(printable(word))}>
          {(control) => <Input {...control} mono value={typed} onChange={(e) => setTyped(e.target.value)} autoFocus />}
        </Field>
      )}
    </Dialog>
  );
}

type Fate = keyof typeof ownerWords.fates;

/** Whether the nodes of deleted users are deleted too, or who becomes their owner. */
function NodesFate({
  users,
  fate,
  onFate,
  to,
  onTo,
}: {
  users: readonly User[];
  fate: Fate;
  onFate(fate: Fate): void;
  to: string;
  onTo(id: string): void;
}) {
  const except = users.map((user) => user.id);
  const others = useOtherUsers(except);
  if (!others || others.length === 0) return null;
  return (
    <>
      <Choices<Fate> label={ownerWords.fate} choices={ownerWords.fates} value={fate} onChange={onFate} />
      {fate === "move" && <OwnerField label={ownerWords.moveTo} value={to} onChange={onTo} except={except} autoFocus />}
    </>
  );
}
