import { Link } from "@tanstack/react-router";
import { clsx } from "clsx";
import { ChevronLeft } from "lucide-react";
import { type ComponentProps, type ReactNode, useEffect } from "react";
import { hostOf, useSession } from "@/api/session";
import { text } from "@/text";

/** "Nodes · 12 shown · mesh.example.com · Fairlead console": it lets people with several networks tell tabs apart. */
export function usePageTitle(...parts: (string | undefined | false)[]) {
  const { coordinator } = useSession();
  const title = [...parts.filter(Boolean), hostOf(coordinator.url), text.common.console].join(" · ");
  useEffect(() => {
    document.title = title;
  }, [title]);
}

/**
 * The width of pages that are not lists. Up to a window of 1920 px they are as wide as lists, so that titles and actions
 * stay in place from page to page; beyond that, lines would become too long to read.
 */
export const pageWidth = "max-w-[1656px]";

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
  /** Whether it is as wide as the content below it, unlike the head of a list. */
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
      <div className={clsx("flex min-h-8 items-center gap-2 max-md:flex-wrap", narrow && pageWidth)}>
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

/** The content of a page below its head. Everything that is not a list is in one of these. */
export const PageBody = ({ className, children, ...rest }: ComponentProps<"div">) => (
  <div className={clsx("px-6 pt-5 pb-16 max-md:px-4", className)} {...rest}>
    <div className={pageWidth}>{children}</div>
  </div>
);

/** A page of text and forms, which scrolls as a whole. Lists fill the window instead. */
export function Page({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  usePageTitle(title);
  return (
    <div className="h-full overflow-y-auto">
      <PageHead title={title} narrow>
        {actions}
      </PageHead>
      <PageBody>{children}</PageBody>
    </div>
  );
}
