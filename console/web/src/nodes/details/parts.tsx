import { clsx } from "clsx";
import { type ReactNode, useId } from "react";
import type { Node, NodeHost } from "@/api";
import { Button } from "@/ui";

/** A section of the summary. Each file in ./sections exports one as its default. */
export interface SummarySection {
  column: "left" | "right";
  /** Its position in the column, from the top. */
  order: number;
  Show(props: { node: Node; deleted: boolean }): ReactNode;
}

/** Related facts under a title. */
export function Section({
  title,
  note,
  action,
  children,
}: {
  title: string;
  note?: ReactNode;
  action?: ReactNode;
  children: ReactNode;
}) {
  const id = useId();
  return (
    <section aria-labelledby={id} className="rounded-lg border border-line bg-surface p-4">
      <div className={clsx("mb-3 flex flex-wrap gap-2", action ? "items-center justify-between" : "items-baseline")}>
        <h2 id={id} className="text-13 font-semibold">
          {title}
        </h2>
        {note && <span className="text-12 text-ink-3">{note}</span>}
        {action}
      </div>
      {children}
    </section>
  );
}

export const Facts = ({ children }: { children: ReactNode }) => (
  <dl className="grid grid-cols-[112px_minmax(0,1fr)] gap-x-3 gap-y-2.5 text-13">{children}</dl>
);

export function Fact({ label, children }: { label: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-ink-2">{label}</dt>
      <dd className="min-w-0 break-words">{children}</dd>
    </>
  );
}

export const SmallButton = ({ className, ...rest }: Parameters<typeof Button>[0]) => (
  <Button className="h-6! px-2! text-12! max-md:h-9! max-md:px-3!" {...rest} />
);

/** The name of a relay region with its code. One that left the relay map has only its number. */
export const relayName = ({ id, code, name }: NonNullable<NodeHost["relay"]>) =>
  name && code && name !== code ? `${name} (${code})` : name || code || String(id);
