/** The frame of the settings pages: a title and their sections. */
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { text } from "@/text";
import { PageBody, PageHead, pageWidth, usePageTitle } from "@/ui";

export { Fact, ScrollingTable, tableCell } from "./parts";

const sections = [
  ["/settings/api-keys", text.settings.apiKeys],
  ["/settings/sessions", text.settings.sessions],
  ["/settings/dns", text.settings.dns],
  ["/settings/webhooks", text.settings.webhooks],
  ["/settings/server", text.settings.server],
  ["/settings/cluster", text.settings.cluster],
  ["/settings/appearance", text.settings.appearance],
] as const;

export function SettingsPage({
  title,
  actions,
  children,
  fill,
  footer,
}: {
  title: string;
  actions?: ReactNode;
  children: ReactNode;
  /** Whether the content takes all the space, as a list does. */
  fill?: boolean;
  /** Stays at the bottom while the rest scrolls. */
  footer?: ReactNode;
}) {
  usePageTitle(title, text.settings.title);
  return (
    <div className="flex h-full flex-col">
      <PageHead
        narrow={!fill}
        title={text.settings.title}
        below={
          <nav
            aria-label={text.settings.sections}
            className="-mx-2 mt-2 flex gap-1 overflow-x-auto px-2 pb-2 [scrollbar-width:none]"
          >
            {sections.map(([to, label]) => (
              <Link
                key={to}
                to={to}
                className="flex h-8 shrink-0 items-center rounded-md px-3 font-medium text-ink-2 -outline-offset-2 hover:bg-sunken hover:text-ink aria-[current=page]:bg-accent-soft aria-[current=page]:text-accent-ink max-md:h-10"
              >
                {label}
              </Link>
            ))}
          </nav>
        }
      >
        {actions}
      </PageHead>
      {fill ? (
        <div className="flex min-h-0 flex-1 flex-col">{children}</div>
      ) : (
        <PageBody className="min-h-0 flex-1 overflow-y-auto">{children}</PageBody>
      )}
      {footer && (
        <div className="shrink-0 border-t border-line bg-surface px-6 py-3 max-md:px-4">
          <div className={pageWidth}>{footer}</div>
        </div>
      )}
    </div>
  );
}
