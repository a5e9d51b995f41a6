import { clsx } from "clsx";
import { CircleAlert, Info, LockKeyhole, type LucideIcon, TriangleAlert } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { ApiError } from "@/api/client";
import type { Right } from "@/api/session";
import { text } from "@/text";
import { Button } from "./button";

/** Shows its children after 150 ms: content that loads faster needs no placeholder. */
export function Delayed({ children }: { children: ReactNode }) {
  const [due, setDue] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setDue(true), 150);
    return () => clearTimeout(timer);
  }, []);
  return due ? children : null;
}

/** A placeholder in the place and size of the content. */
export const Skeleton = ({ className }: { className?: string }) => (
  <span className={clsx("skeleton block h-3", className)} aria-hidden />
);

/** Placeholder lines of the given widths. */
export const LoadingLines = ({ widths, className }: { widths: readonly string[]; className?: string }) => (
  <Delayed>
    <div role="status" aria-label={text.common.loading} className={className}>
      {widths.map((width) => (
        <Skeleton key={width} className={width} />
      ))}
    </div>
  </Delayed>
);

/** An empty state: says that there is nothing here, what would be, and how to add it. */
export function Empty({
  icon: Icon,
  title,
  children,
  action,
}: {
  icon?: LucideIcon;
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}) {
  return (
    <div className="mx-auto flex max-w-[420px] flex-col items-center gap-2 px-6 py-16 text-center">
      {Icon && (
        <span className="mb-2 grid size-10 place-items-center rounded-full bg-chip text-ink-3">
          <Icon className="size-5" aria-hidden />
        </span>
      )}
      <h2 className="text-14 font-semibold">{title}</h2>
      {children && <div className="text-13 text-ink-2">{children}</div>}
      {action && <div className="mt-3 flex gap-2">{action}</div>}
    </div>
  );
}

/** What failed, the server's message, what to do, and the request ID in its log. */
export function ErrorState({ title, error, onRetry }: { title: string; error: unknown; onRetry?(): void }) {
  const id = error instanceof ApiError ? error.requestId : "";
  return (
    <div role="alert" className="mx-auto flex max-w-[460px] flex-col items-center gap-2 px-6 py-16 text-center">
      <span className="mb-2 grid size-10 place-items-center rounded-full bg-bad-soft text-bad">
        <CircleAlert className="size-5" aria-hidden />
      </span>
      <h2 className="text-14 font-semibold">{title}</h2>
      <p className="text-13 text-ink-2">{error instanceof Error ? error.message : String(error)}</p>
      {id && <p className="font-mono text-11 text-ink-3">{text.common.reference(id)}</p>}
      {onRetry && (
        <Button className="mt-3" onClick={onRetry}>
          {text.common.retry}
        </Button>
      )}
    </div>
  );
}

/** Shown instead of content that the session's key may not see. */
export function NotAllowed({ scope }: { scope: Right }) {
  return (
    <Empty icon={LockKeyhole} title={text.common.notAllowedTitle}>
      {text.common.notAllowedBody(scope)}
    </Empty>
  );
}

const bannerLooks = {
  info: ["bg-accent-soft text-accent-ink", Info],
  warn: ["bg-warn-soft text-warn", TriangleAlert],
  bad: ["bg-bad-soft text-bad", CircleAlert],
} as const;

/** A banner that stays while a condition lasts. */
export function Banner({
  tone = "info",
  children,
  action,
}: {
  tone?: keyof typeof bannerLooks;
  children: ReactNode;
  action?: ReactNode;
}) {
  const [look, Icon] = bannerLooks[tone];
  return (
    <div className={clsx("flex items-center gap-2.5 px-6 py-2 text-13 max-md:px-4", look)}>
      <Icon className="size-4 shrink-0" aria-hidden />
      <span className="min-w-0 flex-1">{children}</span>
      {action}
    </div>
  );
}

/** A warning inside a page or dialog. A Banner spans the page. */
export const Warning = ({ children, className }: { children: ReactNode; className?: string }) => (
  <div className={clsx("overflow-hidden rounded-md [&>div]:px-3", className)}>
    <Banner tone="warn">{children}</Banner>
  </div>
);
