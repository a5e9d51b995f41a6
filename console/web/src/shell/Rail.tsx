import { useQuery } from "@tanstack/react-query";
import { Link, useRouterState } from "@tanstack/react-router";
import { clsx } from "clsx";
import { BookOpen, Settings } from "lucide-react";
import { Dialog } from "radix-ui";
import { useId } from "react";
import { loginsQuery, serverQuery, sshQuery, useAllNodes, useCan, useConnection, useSession, useUsers } from "@/api";
import { hostOf } from "@/api/session";
import { waitingRoutes } from "@/nodes";
import { text } from "@/text";
import { Mark } from "@/ui";
import { returnFocus } from "@/ui/focus";
import { documentationOf } from "./documentation";
import { accessPages, mainPages, type PageLink } from "./pages";
import { ReadOnlyBadge } from "./TopBar";

/** The main navigation. Badges appear only where something waits for a person. */
export function Rail() {
  return <RailContent className="border-r border-line bg-surface max-md:hidden" />;
}

/** The navigation on a phone, over the page. */
export function RailSheet({ onClose }: { onClose(): void }) {
  return (
    <Dialog.Root open onOpenChange={(open) => !open && onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-50 bg-black/40" />
        <Dialog.Content
          aria-describedby={undefined}
          onCloseAutoFocus={returnFocus}
          className="fixed inset-y-0 left-0 z-50 flex w-[264px] flex-col bg-surface shadow-bar outline-none"
        >
          <Dialog.Title className="sr-only">{text.shell.mainNav}</Dialog.Title>
          <RailContent className="flex-1" />
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function RailContent({ className }: { className: string }) {
  const { coordinator } = useSession();
  const can = useCan();
  const counts = useCounts();
  const allowed = (page: PageLink) => !page.right || can(page.right);
  const access = useId();
  return (
    <nav aria-label={text.shell.mainNav} className={clsx("flex min-h-0 flex-col", className)}>
      <div className="flex h-14 shrink-0 items-center gap-2.5 px-4">
        <Logo />
        <div className="min-w-0">
          <div className="truncate text-13 leading-4 font-semibold">{hostOf(coordinator.url)}</div>
          <div className="text-11 text-ink-3">{text.common.console}</div>
        </div>
        <ReadOnlyBadge className="ml-auto md:hidden" />
      </div>
      <div className="min-h-0 flex-1 overflow-y-auto px-2 pt-1">
        <ul className="space-y-0.5">
          {mainPages.filter(allowed).map((page) => (
            <Item key={page.to} page={page} {...counts[page.to]} />
          ))}
        </ul>
        {accessPages.some(allowed) && (
          <h2 id={access} className="px-2 pt-5 pb-1 text-11 font-semibold tracking-[0.06em] text-ink-3 uppercase">
            {text.shell.access}
          </h2>
        )}
        <ul aria-labelledby={access} className="space-y-0.5">
          {accessPages.filter(allowed).map((page) => (
            <Item key={page.to} page={page} />
          ))}
        </ul>
      </div>
      <div className="shrink-0 border-t border-line p-2 pt-2.5 text-12 text-ink-2">
        <Health />
        <Link
          to="/settings/api-keys"
          activeProps={{ className: "text-accent-ink!" }}
          className="mt-1 flex h-8 items-center gap-2 rounded-md px-2 hover:bg-sunken hover:text-ink"
        >
          <Settings className="size-3.5 shrink-0" aria-hidden />
          <span className="truncate">{text.shell.settings}</span>
        </Link>
        <Documentation />
      </div>
    </nav>
  );
}

function useCounts(): Partial<Record<PageLink["to"], { count?: number; waiting?: number }>> {
  const can = useCan();
  const { data: nodes } = useAllNodes();
  const { data: users } = useUsers();
  const { data: logins } = useQuery({ ...loginsQuery, enabled: can("logins:read") });
  const { data: ssh } = useQuery({ ...sshQuery, enabled: can("ssh:read") });
  return {
    "/nodes": { count: nodes?.items.length },
    "/users": { count: users?.items.length },
    "/routes": { waiting: nodes?.items.reduce((sum, node) => sum + waitingRoutes(node).length, 0) },
    "/requests": {
      waiting:
        (logins?.length ?? 0) +
        (ssh?.length ?? 0) +
        unapproved(nodes?.items) +
        unapproved(users?.items) +
        held(users?.items),
    },
  };
}

const held = (all: readonly { suspensionHeldAt?: string }[] = []) =>
  all.filter((each) => each.suspensionHeldAt !== undefined).length;

const unapproved = (all: readonly { needsApproval?: boolean }[] = []) =>
  all.filter((each) => each.needsApproval).length;

function Item({ page, count, waiting }: { page: PageLink; count?: number; waiting?: number }) {
  const Icon = page.icon;
  return (
    <li>
      <Link
        to={page.to}
        activeOptions={{ exact: page.to === "/", includeSearch: false }}
        className="group flex h-8 items-center gap-2.5 rounded-md px-2 text-13 font-medium text-ink-2 hover:bg-sunken hover:text-ink aria-[current=page]:bg-accent-soft aria-[current=page]:text-accent-ink max-md:h-10"
      >
        <Icon className="size-4 shrink-0" aria-hidden />
        <span className="flex-1">{page.title}</span>
        {count !== undefined && (
          <span className="text-12 text-ink-3 tabular-nums group-aria-[current=page]:text-accent-ink">
            {count.toLocaleString("en")}
          </span>
        )}
        {waiting ? (
          <span className="rounded-full bg-warn-soft px-1.5 text-11 leading-[18px] font-semibold text-warn tabular-nums">
            <span aria-hidden>{waiting}</span>
            <span className="sr-only">{text.shell.waiting(waiting)}</span>
          </span>
        ) : null}
      </Link>
    </li>
  );
}

/** The documentation page for the current page. */
function Documentation() {
  const path = useRouterState({ select: (state) => state.location.pathname });
  return (
    <a
      href={documentationOf(path)}
      target="_blank"
      rel="noreferrer"
      className="flex h-8 items-center gap-2 rounded-md px-2 hover:bg-sunken hover:text-ink max-md:h-10"
    >
      <BookOpen className="size-3.5 shrink-0" aria-hidden />
      <span className="truncate">{text.shell.documentation}</span>
    </a>
  );
}

function Health() {
  const { coordinator } = useSession();
  const can = useCan();
  const { data, error } = useQuery({ ...serverQuery, enabled: can("service:read") });
  const well = ["on", text.shell.healthy] as const;
  const away = useConnection().name === "offline";
  const [state, words] =
    error || away
      ? (["bad", text.shell.unknownHealth] as const)
      : data?.checks.some((check) => check.status !== "pass")
        ? (["warn", text.shell.degraded] as const)
        : well;
  return (
    <Link to="/settings/server" className="flex h-7 items-center gap-2 rounded-md px-2 hover:bg-sunken hover:text-ink">
      <Mark state={state} />
      <span className="truncate">{words}</span>
      <span className="ml-auto max-w-20 truncate font-mono text-11 text-ink-3">{coordinator.productVersion}</span>
    </Link>
  );
}

export function Logo() {
  return (
    <svg viewBox="0 0 24 24" className="size-6 shrink-0 text-accent" aria-hidden="true">
      <path d="M5 6 19 9 10 19Z" fill="none" stroke="currentColor" strokeWidth="1.6" opacity=".55" />
      <g fill="currentColor">
        <circle cx="5" cy="6" r="2.6" />
        <circle cx="19" cy="9" r="2.6" />
        <circle cx="10" cy="19" r="2.6" />
      </g>
    </svg>
  );
}
