/** One user: details, nodes, keys, groups with their lines in the policy, and what the user can reach. */
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { KeyRound, UserRound } from "lucide-react";
import { type ReactNode, useMemo, useRef } from "react";
import { UserAccess } from "@/access";
import { ActivityList } from "@/activity";
import { type Node, type User, useCan, useNodes, useUsers } from "@/api";
import type { Right } from "@/api/session";
import { byName } from "@/nodes";
import { useSearchState } from "@/router/search";
import { printable, text } from "@/text";
import { userWords } from "@/text/users";
import {
  Avatar,
  BackLink,
  Banner,
  Button,
  Empty,
  ErrorState,
  LoadingLines,
  linkButton,
  PageBody,
  PageHead,
  Section,
  Tabs,
  Time,
  usePageTitle,
  useShortcuts,
  useWrites,
  WriteButton,
} from "@/ui";
import {
  holdingsOf,
  isHeld,
  isLocal,
  isSuspended,
  needsApproval,
  nodesOf,
  roleSource,
  UserActionsProvider,
  UserMenu,
  useAccessWrites,
  useAdminWrites,
  useUserActions,
} from "@/users";
import { LastActivity } from "../users/columns";
import { Groups, Keys, Nodes, Passkeys } from "./sections";

const t = userWords.page;

const usual = { tab: "summary" };
const panelId = "user-part";
type Tab = keyof typeof t.tabs;
const rights: Partial<Record<Tab, Right>> = { access: "policy:read", activity: "history:read" };

export function UserPage() {
  const { id } = useParams({ from: "/users/$id" });
  const { data, error, refetch } = useUsers();
  const user = data?.items.find((each) => each.id === id);
  // A user that is deleted while being viewed stays readable.
  const last = useRef<User | undefined>(undefined);
  if (user) last.current = user;
  const shown = user ?? (last.current?.id === id ? last.current : undefined);
  usePageTitle(shown && printable(shown.name), text.users.userTitle);
  if (shown)
    return (
      <UserActionsProvider>
        <UserView key={id} user={shown} gone={data?.complete === true && !user} />
      </UserActionsProvider>
    );
  return (
    <div className="h-full overflow-y-auto">
      <PageHead title={text.users.userTitle} />
      {data?.complete ? (
        <Empty
          icon={UserRound}
          title={t.missingTitle}
          action={
            <Link to="/users" className={linkButton()}>
              {t.all}
            </Link>
          }
        >
          {t.missingBody}
        </Empty>
      ) : error && !data ? (
        <ErrorState title={t.failed} error={error} onRetry={() => void refetch()} />
      ) : (
        <LoadingLines widths={["w-64", "w-96 max-w-full"]} className="space-y-4 p-6" />
      )}
    </div>
  );
}

function UserView({ user, gone }: { user: User; gone: boolean }) {
  const can = useCan();
  const start = useUserActions();
  const navigate = useNavigate();
  const { data: nodes } = useNodes();
  const own = useMemo(() => (nodes ? nodesOf(nodes.items, user).sort(byName) : undefined), [nodes, user]);
  const [search, setSearch] = useSearchState(usual);
  const tabs = (Object.keys(t.tabs) as Tab[])
    .filter((value) => !rights[value] || (can(rights[value]) && !(gone && value === "access")))
    .map((value) => ({ value, label: t.tabs[value] }));
  const tab = tabs.find(({ value }) => value === search.tab)?.value ?? "summary";
  useRenameKey(user, gone);
  return (
    <div className="h-full overflow-y-auto">
      {gone ? <Banner tone="warn">{t.gone}</Banner> : <AccessBanner user={user} />}
      <PageHead
        narrow
        above={<BackLink to="/users">{t.all}</BackLink>}
        below={
          <div className="pt-3">
            <UserFacts user={user} />
            <div className="mt-3 flex">
              <Tabs
                label={printable(user.name)}
                tabs={tabs}
                value={tab}
                onChange={(value) => setSearch({ tab: value })}
                panel={panelId}
              />
            </div>
          </div>
        }
        title={
          <span className="flex min-w-0 items-center gap-3">
            <Avatar name={user.displayName || user.name} />
            <span className="truncate">{printable(user.name)}</span>
            {user.displayName && (
              <span className="truncate text-14 font-normal tracking-normal text-ink-2 max-md:hidden">
                {printable(user.displayName)}
              </span>
            )}
          </span>
        }
      >
        {!gone && (
          <>
            <WriteButton right="preauthkeys:write" icon={KeyRound} onClick={() => start({ name: "key", user })}>
              {userWords.actions.key}
            </WriteButton>
            <UserMenu user={user} here onDeleted={() => void navigate({ to: "/users" })} />
          </>
        )}
      </PageHead>
      <PageBody id={panelId} role="tabpanel" aria-labelledby={`${panelId}-${tab}`}>
        <Part user={user} nodes={own} tab={tab} />
      </PageBody>
    </div>
  );
}

/** Why the user has no access, and what gives it back. */
function AccessBanner({ user }: { user: User }) {
  const start = useUserActions();
  const admin = useAdminWrites();
  if (isSuspended(user))
    return (
      <Banner
        tone="bad"
        action={
          <WriteButton right="users:write" onClick={() => start({ name: "restore", user })}>
            {userWords.actions.restore}
          </WriteButton>
        }
      >
        {t.suspended} {user.suspendedAt && <Time at={user.suspendedAt} format={t.suspendedSince} />}
      </Banner>
    );
  if (isHeld(user))
    return (
      <Banner
        tone="warn"
        action={
          <span className="flex gap-2">
            <WriteButton right="users:write" onClick={() => start({ name: "decide", what: "keep", users: [user] })}>
              {userWords.actions.keep}
            </WriteButton>
            <WriteButton right="users:write" onClick={() => start({ name: "suspend", user })}>
              {userWords.actions.suspend}
            </WriteButton>
          </span>
        }
      >
        {t.held} {user.suspensionHeldAt && <Time at={user.suspensionHeldAt} format={t.heldSince} />}
      </Banner>
    );
  if (!needsApproval(user)) return null;
  return (
    <Banner
      tone="warn"
      action={
        admin.offered && (
          <Button why={admin.why} onClick={() => start({ name: "approve", user })}>
            {userWords.actions.approve}
          </Button>
        )
      }
    >
      {t.approval}
    </Banner>
  );
}

function useRenameKey(user: User, gone: boolean) {
  const start = useUserActions();
  const writes = useWrites("users:write");
  const may = writes.offered && writes.now && !gone && isLocal(user);
  const run = () => start({ name: "rename", user });
  useShortcuts(may ? [{ keys: "e", label: userWords.actions.rename, group: text.shell.groups.page, run }] : []);
}

function UserFacts({ user }: { user: User }) {
  const can = useCan();
  const { data: nodes } = useNodes();
  const has = useMemo(() => holdingsOf(nodes?.items ?? [], nodes?.complete ?? false)(user), [nodes, user]);
  return (
    <dl className="flex flex-wrap gap-x-10 gap-y-3">
      {can("nodes:read") && (
        <Fact label={t.facts.activity}>
          <LastActivity has={has} focusable />
        </Fact>
      )}
      <Fact label={t.facts.role}>
        <RoleFact user={user} />
      </Fact>
      <Fact label={t.facts.source}>{isLocal(user) ? userWords.local : printable(user.provider)}</Fact>
      {user.email && <Fact label={t.facts.email}>{printable(user.email)}</Fact>}
      {user.createdAt && (
        <Fact label={t.facts.created}>
          <Time at={user.createdAt} />
        </Fact>
      )}
      <Fact label={t.facts.id}>
        <span className="font-mono text-12">{user.id}</span>
      </Fact>
    </dl>
  );
}

/** A user's role and where it comes from, with a button that changes it. */
function RoleFact({ user }: { user: User }) {
  const start = useUserActions();
  const { offered, why } = useAccessWrites();
  return (
    <span className="flex flex-wrap items-center gap-x-2">
      <span>{roleSource(user)}</span>
      {offered && !needsApproval(user) && (
        <Button
          look="ghost"
          className="-my-1 -ml-1 h-7 px-1.5 text-accent-ink"
          why={why}
          onClick={() => start({ name: "role", user })}
        >
          {t.changeRole}
        </Button>
      )}
    </span>
  );
}

function Part({ user, nodes, tab }: { user: User; nodes: readonly Node[] | undefined; tab: Tab }) {
  const can = useCan();
  if (tab === "access") return <UserAccess user={user} />;
  if (tab === "activity")
    return (
      <Section title={t.activity}>
        <div className="px-4 py-1">
          <ActivityList filter={{ kind: "user", object: user.id }} limit={20} more />
        </div>
      </Section>
    );
  return (
    <div className="grid grid-cols-[minmax(0,7fr)_minmax(0,4fr)] items-start gap-5 max-lg:grid-cols-1">
      {can("nodes:read") && <Nodes user={user} nodes={nodes} />}
      <div className="space-y-5">
        {isLocal(user) && <Passkeys user={user} />}
        {can("policy:read") && <Groups user={user} />}
        {can("preauthkeys:read") && <Keys user={user} />}
      </div>
    </div>
  );
}

function Fact({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div className="min-w-0">
      <dt className="text-12 text-ink-3">{label}</dt>
      <dd className="truncate">{children}</dd>
    </div>
  );
}
