/** Nodes and users that have no access until somebody approves them, and users whose suspension is held. */
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { type Node, type User, useAllNodes, useUsers } from "@/api";
import { ipv4Of, OsIcon, ownerWords, systemName, useApproveNodes, useNodeActions } from "@/nodes";
import { printable } from "@/text";
import { requestWords } from "@/text/requests";
import { Avatar, Button, Section, Time, useWrites, WriteButton } from "@/ui";
import { isHeld, needsApproval, useAdminWrites, useUserActions } from "@/users";
import { created, heldFirst, rowShape } from "./facts";

const t = requestWords;

/** What waits for approval, longest first. Undefined while it is not known. */
export function useUnapproved() {
  const { data: nodes, isLoading: nodesLoading } = useAllNodes();
  const { data: users, isLoading: usersLoading } = useUsers();
  return {
    nodes: nodes?.items.filter((node) => node.needsApproval).sort(created) ?? [],
    users: users?.items.filter(needsApproval).sort(created) ?? [],
    held: users?.items.filter(isHeld).sort(heldFirst) ?? [],
    loading: nodesLoading || usersLoading,
  };
}

export function UnapprovedUsers({ users }: { users: readonly User[] }) {
  const start = useUserActions();
  const admin = useAdminWrites();
  if (users.length === 0) return null;
  return (
    <Section
      title={t.users.title}
      note={users.length}
      action={
        admin.offered &&
        users.length > 1 && (
          <Button why={admin.why} onClick={() => start({ name: "decide", what: "approve", users })}>
            {t.users.approveAll(users.length)}
          </Button>
        )
      }
    >
      <Lead>{t.users.lead}</Lead>
      <ul aria-label={t.users.list}>
        {users.map((user) => (
          <Newcomer key={user.id} user={user} />
        ))}
      </ul>
    </Section>
  );
}

function Newcomer({ user }: { user: User }) {
  const start = useUserActions();
  const admin = useAdminWrites();
  const name = printable(user.name);
  return (
    <Person user={user} since={user.createdAt}>
      <WriteButton
        right="users:write"
        aria-label={t.deleteName(name)}
        onClick={() => start({ name: "delete", users: [user] })}
      >
        {t.delete}
      </WriteButton>
      {admin.offered && (
        <Button
          look="primary"
          why={admin.why}
          aria-label={t.devices.letInName(name)}
          onClick={() => start({ name: "approve", user })}
        >
          {t.devices.letIn}
        </Button>
      )}
    </Person>
  );
}

/** Users who would have been suspended, and what to do about them. */
export function HeldSuspensions({ users }: { users: readonly User[] }) {
  const start = useUserActions();
  const { offered, why } = useWrites("users:write");
  if (users.length === 0) return null;
  return (
    <Section
      title={t.held.title}
      note={users.length}
      action={
        offered &&
        users.length > 1 && (
          <span className="flex gap-2">
            <Button why={why} onClick={() => start({ name: "decide", what: "keep", users })}>
              {t.held.keepAll(users.length)}
            </Button>
            <Button why={why} onClick={() => start({ name: "decide", what: "suspend", users })}>
              {t.held.suspendAll(users.length)}
            </Button>
          </span>
        )
      }
    >
      <Lead>{t.held.lead}</Lead>
      <ul aria-label={t.held.list}>
        {users.map((user) => (
          <Leaver key={user.id} user={user} />
        ))}
      </ul>
    </Section>
  );
}

function Leaver({ user }: { user: User }) {
  const start = useUserActions();
  const name = printable(user.name);
  return (
    <Person user={user} since={user.suspensionHeldAt}>
      <WriteButton
        right="users:write"
        aria-label={t.held.keepName(name)}
        onClick={() => start({ name: "decide", what: "keep", users: [user] })}
      >
        {t.held.keep}
      </WriteButton>
      <WriteButton
        right="users:write"
        look="danger"
        aria-label={t.held.suspendName(name)}
        onClick={() => start({ name: "suspend", user })}
      >
        {t.held.suspend}
      </WriteButton>
    </Person>
  );
}

/** A row with a user, since when the user waits, and buttons. */
function Person({ user, since, children }: { user: User; since?: string | null; children: ReactNode }) {
  const name = printable(user.name);
  return (
    <li className={rowShape}>
      <div className="flex min-w-0 flex-1 items-start gap-3">
        <span className="grid size-8 shrink-0 place-items-center">
          <Avatar name={user.displayName || user.name} />
        </span>
        <div className="min-w-0">
          <Link to="/users/$id" params={{ id: user.id }} className={nameShape}>
            {name}
          </Link>
          <div className="flex flex-wrap gap-x-3 text-12 text-ink-2">
            {user.displayName && <span>{printable(user.displayName)}</span>}
            {user.email && user.email !== user.name && <span>{printable(user.email)}</span>}
            {user.nodeCount > 0 && <span>{t.users.nodes(user.nodeCount)}</span>}
            {since && <Time at={since} />}
          </div>
        </div>
      </div>
      <div className="flex shrink-0 gap-2 max-md:[&>button]:h-11 max-sm:justify-end">{children}</div>
    </li>
  );
}

export function UnapprovedNodes({ nodes }: { nodes: readonly Node[] }) {
  const approve = useApproveNodes();
  const { offered, why } = useWrites("nodes:write");
  if (nodes.length === 0) return null;
  return (
    <Section
      title={t.nodes.title}
      note={nodes.length}
      action={
        offered &&
        nodes.length > 1 && (
          <Button why={why} onClick={() => approve(nodes)}>
            {t.nodes.approveAll(nodes.length)}
          </Button>
        )
      }
    >
      <Lead>{t.nodes.lead}</Lead>
      <ul aria-label={t.nodes.list}>
        {nodes.map((node) => (
          <Held key={node.id} node={node} onApprove={() => approve([node])} />
        ))}
      </ul>
    </Section>
  );
}

function Held({ node, onApprove }: { node: Node; onApprove(): void }) {
  const start = useNodeActions();
  const name = printable(node.givenName);
  return (
    <li className={rowShape}>
      <div className="flex min-w-0 flex-1 items-start gap-3">
        <span className="grid size-8 shrink-0 place-items-center rounded-full bg-chip">
          <OsIcon os={node.os} />
        </span>
        <div className="min-w-0">
          <Link to="/nodes/$id" params={{ id: node.id }} className={nameShape}>
            {name}
          </Link>
          <div className="flex flex-wrap gap-x-3 text-12 text-ink-2">
            <span>{printable(ownerWords(node))}</span>
            {node.os && <span>{printable(systemName(node.os), 40)}</span>}
            <span className="font-mono">{ipv4Of(node)}</span>
            <Time at={node.createdAt} />
          </div>
        </div>
      </div>
      <div className="flex shrink-0 gap-2 max-md:[&>button]:h-11 max-sm:justify-end">
        <WriteButton
          right="nodes:write"
          aria-label={t.deleteName(name)}
          onClick={() => start({ name: "delete", nodes: [node] })}
        >
          {t.delete}
        </WriteButton>
        <WriteButton right="nodes:write" look="primary" aria-label={t.devices.letInName(name)} onClick={onApprove}>
          {t.devices.letIn}
        </WriteButton>
      </div>
    </li>
  );
}

const nameShape = "inline-flex min-h-6 min-w-0 items-center font-medium break-all hover:underline";
const Lead = ({ children }: { children: ReactNode }) => (
  <p className="border-b border-hair px-4 py-2 text-12 text-ink-2">{children}</p>
);
