import { Link } from "@tanstack/react-router";
import { clsx } from "clsx";
import { ChevronLeft } from "lucide-react";
import { type ReactNode, useEffect } from "react";
import { text } from "@/text";

/** "Nodes · 12 shown · Console" */
export function usePageTitle(...parts: (string | undefined | false)[]) {
  const title = [...parts.filter(Boolean), text.common.console].join(" · ");
  useEffect(() => {
    document.title = title;
  }, [title]);
}

/** The title of a page and its actions. */
export function PageHead({
  title,
  children,
  above,
  below,
  narrow,
}: {
  title: ReactNode;
  children?: ReactNode;
  /** A link back. */
  above?: ReactNode;
  below?: ReactNode;
  /** As wide as the text below it, unlike the head of a list. */
  narrow?: boolean;
}) {
  return (
    <div
      className={clsx(
        "@container shrink-0 bg-canvas px-6 max-md:px-4",
        above ? "pt-2" : "pt-5",
        below && "border-b border-line",
      )}
    >
      {above}
      <div className={clsx("flex min-h-8 items-center gap-2 max-md:flex-wrap", narrow && "max-w-[1120px]")}>
        <h1 className="min-w-0 flex-1 truncate text-20 font-semibold tracking-[-0.01em] has-[form]:overflow-visible has-[form]:whitespace-normal">
          {title}
        </h1>
        {children}
      </div>
      {below}
    </div>
  );
}

/** The link from a details page back to its list, above the title. */
export const BackLink = ({ to, children }: { to: "/nodes" | "/users"; children: ReactNode }) => (
  <Link to={to} className="-ml-1 inline-flex h-6 items-center gap-1 rounded pr-1 text-12 text-ink-2 hover:text-ink">
    <ChevronLeft className="size-3.5" aria-hidden /> {children}
  </Link>
);

/** A page of text and forms: it scrolls as a whole and has a readable width. Lists fill the window instead. */
export function Page({
  title,
  actions,
  children,
  wide,
}: {
  title: string;
  actions?: ReactNode;
  children: ReactNode;
  wide?: boolean;
}) {
  usePageTitle(title);
  return (
    <div className="h-full overflow-y-auto">
      <PageHead title={title} narrow={!wide}>
        {actions}
      </PageHead>
      <div className={clsx("px-6 pt-5 pb-16 max-md:px-4", !wide && "max-w-[1168px]")}>{children}</div>
    </div>
  );
}
