import { clsx } from "clsx";
import { type ReactNode, useId } from "react";

/** A titled section of a page, on its own surface. */
export function Section({
  title,
  note,
  action,
  children,
  className,
}: {
  title: string;
  /** Muted text next to the title: a count, a time. */
  note?: ReactNode;
  action?: ReactNode;
  children: ReactNode;
  className?: string;
}) {
  const id = useId();
  return (
    <section aria-labelledby={id} className={clsx("min-w-0 rounded-lg border border-line bg-surface", className)}>
      <div className="flex min-h-12 flex-wrap items-center gap-x-2 border-b border-line px-4 py-2">
        <h2 id={id} className="text-14 font-semibold">
          {title}
        </h2>
        {note !== undefined && <span className="text-12 text-ink-3 tabular-nums">{note}</span>}
        {action && <div className="ml-auto flex items-center gap-2">{action}</div>}
      </div>
      {children}
    </section>
  );
}
