import type { ReactNode } from "react";
import { text } from "@/text";
import { Banner, ErrorState } from "@/ui";
import { accessPages, mainPages, type PageLink } from "./pages";
import { Logo } from "./Rail";

/** The console without a session: navigation and an empty page. It has no router, so its links load the page again. */
export function Frame({ children }: { children?: ReactNode }) {
  return (
    <div className="grid h-dvh grid-cols-[216px_minmax(0,1fr)] bg-canvas text-ink max-md:grid-cols-[minmax(0,1fr)]">
      <nav
        aria-label={text.shell.mainNav}
        className="flex min-h-0 flex-col border-r border-line bg-surface max-md:hidden"
      >
        <div className="flex h-14 shrink-0 items-center gap-2.5 px-4">
          <Logo />
          <div className="text-13 font-semibold">{text.common.console}</div>
        </div>
        <div className="min-h-0 flex-1 overflow-y-auto px-2 pt-1">
          <Links pages={mainPages} />
          <h2 className="px-2 pt-5 pb-1 text-11 font-semibold tracking-[0.06em] text-ink-3 uppercase">
            {text.shell.access}
          </h2>
          <Links pages={accessPages} />
        </div>
      </nav>
      <div className="flex min-h-0 min-w-0 flex-col">
        <header className="h-14 shrink-0 border-b border-line bg-surface" />
        {children}
      </div>
    </div>
  );
}

const Links = ({ pages }: { pages: readonly PageLink[] }) => (
  <ul className="space-y-0.5">
    {pages.map(({ to, title, icon: Icon }) => (
      <li key={to}>
        <a
          href={`/admin${to}`}
          className="flex h-8 items-center gap-2.5 rounded-md px-2 text-13 font-medium text-ink-2 hover:bg-sunken hover:text-ink"
        >
          <Icon className="size-4 shrink-0" aria-hidden />
          {title}
        </a>
      </li>
    ))}
  </ul>
);

/** Shown while the session cannot be loaded. The session query retries. */
export function SessionFailed({ error, onRetry }: { error: Error; onRetry(): void }) {
  return (
    <Frame>
      <main className="min-h-0 flex-1 overflow-y-auto">
        <h1 className="sr-only">{text.common.console}</h1>
        <Banner tone="warn">{text.shell.sessionRetry}</Banner>
        <ErrorState title={text.shell.sessionFailed} error={error} onRetry={onRetry} />
      </main>
    </Frame>
  );
}
