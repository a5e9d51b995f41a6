/** One user: facts, nodes, keys, groups with their lines in the policy, and what the user can reach. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { ChevronLeft, KeyRound, UserRound } from "lucide-react";
import { type ReactNode, useMemo, useRef, useState } from "react";
import { UserAccess } from "@/access";
import { ActivityList } from "@/activity";
import { type Node, preAuthKeysQuery, type User, useCan, useNodes, useUsers } from "@/api";
import type { Right } from "@/api/session";
import { keyName, keyState } from "@/keys";
import { byName, ipv4Of, NodeMark, OsIcon } from "@/nodes";
import { useSearchState } from "@/router/search";
import { printable, text } from "@/text";
import { userWords } from "@/text/users";
import {
  Avatar,
  Badge,
  Banner,
  Button,
  Delayed,
  Empty,
  ErrorState,
  linkButton,
  PageHead,
  Section,
  Skeleton,
  Tabs,
  Time,
  useNow,
  usePageTitle,
  useShortcuts,
  useWrites,
  WriteButton,
} from "@/ui";
import {
  holdingsOf,
  isLocal,
  MentionList,
  nodesOf,
  UserActionsProvider,
  UserMenu,
  usePolicyMentions,
  useUserActions,
} from "@/users";
import { LastActivity } from "../users/columns";

const t = userWords.page;

const usual = { tab: "summary" };
const panelId = "user-part";
type Tab = keyof typeof t.tabs;
const rights: Partial<Record<Tab, Right>> = { access: "policy:read", activity: "history:read" };

export function UserPage() {
  const { id } = useParams({ from: "/users/$id" });
  const { data, error, refetch } = useUsers();
  const user = data?.items.find((each) => each.id === id);
  // A user that goes while it is looked at stays readable.
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
        <Delayed>
          <div role="status" aria-label={text.common.loading} className="space-y-4 p-6">
            <Skeleton className="w-64" />
            <Skeleton className="w-96 max-w-full" />
          </div>
        </Delayed>
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
  const writes = useWrites("users:write");
  const may = writes.offered && writes.now && !gone;
  useShortcuts(
    may && isLocal(user)
      ? [
          {
            keys: "e",
            label: userWords.actions.rename,
            group: text.shell.groups.page,
            run: () => start({ name: "rename", user }),
          },
        ]
      : [],
  );
  return (
    <div className="h-full overflow-y-auto">
      {gone && <Banner tone="warn">{t.gone}</Banner>}
      <PageHead
        narrow
        above={
          <Link
            to="/users"
            className="-ml-1 inline-flex h-6 items-center gap-1 rounded pr-1 text-12 text-ink-2 hover:text-ink"
          >
            <ChevronLeft className="size-3.5" aria-hidden /> {t.all}
          </Link>
        }
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
              <span className="truncate text-14 font-normal tracking-normal text-ink-2">
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
      <div
        id={panelId}
        role="tabpanel"
        aria-labelledby={`${panelId}-${tab}`}
        className="max-w-[1168px] px-6 pt-5 pb-16 max-md:px-4"
      >
        <Part user={user} nodes={own} tab={tab} />
      </div>
    </div>
  );
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

const mostNodes = 10;

function Nodes({ user, nodes }: { user: User; nodes: readonly Node[] | undefined }) {
  const [all, setAll] = useState(false);
  const shown = all ? nodes : nodes?.slice(0, mostNodes);
  return (
    <Section
      title={t.nodes}
      note={nodes?.length}
      action={
        nodes &&
        nodes.length > 0 && (
          <Link
            to="/nodes"
            search={{ q: `user:${user.name.toLowerCase()}` } as never}
            className="-mr-2 inline-flex h-8 items-center rounded-md px-2 font-medium text-accent-ink hover:bg-accent-soft"
          >
            {t.allNodes}
          </Link>
        )
      }
    >
      {shown && shown.length === 0 && (
        <p className="px-4 py-4 text-ink-2">
          <span className="text-ink">{t.noNodes}</span> {t.noNodesHint}
        </p>
      )}
      <ul>
        {shown?.map((node) => (
          <li key={node.id} className="flex h-10 items-center gap-2.5 border-b border-hair px-4 last:border-b-0">
            <NodeMark node={node} />
            <OsIcon os={node.os} />
            <Link
              to="/nodes/$id"
              params={{ id: node.id }}
              className="min-w-0 flex-1 truncate font-medium hover:underline"
            >
              {printable(node.givenName)}
            </Link>
            <span className="font-mono text-12 text-ink-2 max-sm:hidden">{ipv4Of(node)}</span>
            <span className="w-24 text-right text-12 text-ink-3">
              {node.expired ? (
                <span className="text-bad">{text.nodes.state.expired}</span>
              ) : node.online ? (
                text.common.now
              ) : (
                <Time at={node.lastSeen} focusable={false} />
              )}
            </span>
          </li>
        ))}
      </ul>
      {nodes && shown && nodes.length > shown.length && (
        <div className="border-t border-hair px-2 py-1">
          <Button look="ghost" onClick={() => setAll(true)}>
            {t.more(nodes.length)}
          </Button>
        </div>
      )}
    </Section>
  );
}

function Groups({ user }: { user: User }) {
  const mentions = usePolicyMentions();
  const groups = mentions?.groups(user);
  const others = mentions?.all(user).filter((mention) => mention.section !== "groups") ?? [];
  return (
    <Section title={t.groups} note={groups?.length}>
      <div className="space-y-3 px-4 py-3">
        {groups &&
          (groups.length > 0 ? (
            <MentionList mentions={groups} most={20} />
          ) : (
            <p className="text-ink-2">{t.noGroups}</p>
          ))}
        {others.length > 0 && (
          <div>
            <h3 className="text-12 text-ink-3">{t.named}</h3>
            <MentionList mentions={others} most={12} />
          </div>
        )}
      </div>
    </Section>
  );
}

function Keys({ user }: { user: User }) {
  const { data } = useQuery(preAuthKeysQuery);
  const now = useNow();
  const keys = data?.items.filter((key) => key.user?.id === user.id && keyState(key, now) === "usable");
  return (
    <Section title={t.keys} note={keys?.length}>
      {keys?.length === 0 && <p className="px-4 py-4 text-ink-2">{t.noKeys}</p>}
      <ul>
        {keys?.map((key) => (
          <li key={key.id} className="border-b border-hair px-4 py-2 last:border-b-0">
            <div className="flex items-center gap-2">
              <Link
                to="/keys"
                search={{ q: keyName(key) } as never}
                className="min-w-0 flex-1 truncate font-mono text-12 hover:underline"
              >
                {keyName(key)}
              </Link>
              <Badge>{key.reusable ? t.keyReusable : t.keyOnce}</Badge>
              {key.ephemeral && <Badge>{t.keyEphemeral}</Badge>}
            </div>
            <div className="text-12 text-ink-3">
              <Time at={key.expiration} format={t.ends} />
              {key.uses > 0 && ` · ${t.uses(key.uses)}`}
            </div>
          </li>
        ))}
      </ul>
    </Section>
  );
}
