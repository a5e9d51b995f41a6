/** The frame of the settings pages: a title and their sections. */
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { text } from "@/text";
import { PageHead, usePageTitle } from "@/ui";

const sections = [
  ["/settings/api-keys", text.settings.apiKeys],
  ["/settings/dns", text.settings.dns],
  ["/settings/server", text.settings.server],
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
  /** The content takes all the space, as a list does. */
  fill?: boolean;
  /** Stays at the bottom while the rest scrolls. */
  footer?: ReactNode;
}) {
  usePageTitle(title, text.settings.title);
  return (
    <div className="flex h-full flex-col">
      <PageHead
        title={text.settings.title}
        below={
          <nav
            aria-label={text.settings.sections}
            className="-mx-2 mt-1 flex overflow-x-auto px-2 [scrollbar-width:none]"
          >
            {sections.map(([to, label]) => (
              <Link
                key={to}
                to={to}
                className="flex h-11 shrink-0 items-center border-b-2 border-transparent px-2 font-medium text-ink-2 -outline-offset-2 hover:text-ink aria-[current=page]:border-accent aria-[current=page]:text-ink"
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
        <div className="min-h-0 flex-1 overflow-y-auto px-6 pt-5 pb-16 max-md:px-4">
          <div className="max-w-[1120px]">{children}</div>
        </div>
      )}
      {footer && (
        <div className="shrink-0 border-t border-line bg-surface px-6 py-3 max-md:px-4">
          <div className="max-w-[1120px]">{footer}</div>
        </div>
      )}
    </div>
  );
}
