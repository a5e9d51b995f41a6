import { Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { Suspense, useEffect } from "react";
import { useSession } from "@/api";
import { hostOf } from "@/api/session";
import { text } from "@/text";
import { LiveRegions, StatusLine } from "@/ui";
import { useKeyboard } from "@/ui/shortcuts";
import { OfflineBanner, SkipLink } from "./parts";
import { Logo } from "./Rail";
import { KeyMenu, LiveMark, ThemeButton } from "./TopBar";

/** The console of a person who may only use what they own. It has a single page, so it needs no navigation. */
export function MemberShell() {
  const { coordinator } = useSession();
  const navigate = useNavigate();
  const elsewhere = useRouterState({ select: (state) => !state.location.pathname.endsWith("/my") });
  useKeyboard();
  useEffect(() => {
    if (elsewhere) void navigate({ to: "/my", replace: true });
  }, [elsewhere, navigate]);
  return (
    <div className="flex h-dvh flex-col bg-canvas text-ink">
      <SkipLink />
      <header className="flex h-14 shrink-0 items-center gap-3 border-b border-line bg-surface px-6 max-md:px-4">
        <Logo />
        <div className="min-w-0">
          <div className="truncate text-13 leading-4 font-semibold">{hostOf(coordinator.url)}</div>
          <div className="text-11 text-ink-3">{text.common.console}</div>
        </div>
        <div className="ml-auto flex items-center gap-2 text-12 text-ink-2 max-md:gap-1">
          <span className="max-md:hidden">
            <LiveMark />
          </span>
          <ThemeButton />
          <KeyMenu />
        </div>
      </header>
      <OfflineBanner />
      <main id="main" tabIndex={-1} className="min-h-0 flex-1 outline-none">
        <Suspense>{!elsewhere && <Outlet />}</Suspense>
      </main>
      <StatusLine />
      <LiveRegions />
    </div>
  );
}
