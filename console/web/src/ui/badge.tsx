import { clsx } from "clsx";
import type { ReactNode } from "react";
import { initials, printable, text } from "@/text";
import { Tip } from "./tip";

const tones = {
  plain: "bg-chip text-ink-2",
  ok: "bg-ok-soft text-ok",
  warn: "bg-warn-soft text-warn",
  bad: "bg-bad-soft text-bad",
  route: "bg-route-soft text-route",
  accent: "bg-accent-soft text-accent-ink",
};
export type Tone = keyof typeof tones;

export function Badge({
  tone = "plain",
  children,
  className,
}: {
  tone?: Tone;
  children: ReactNode;
  className?: string;
}) {
  return (
    <span
      className={clsx(
        "inline-flex h-5 items-center gap-1 rounded px-1.5 text-11 font-medium whitespace-nowrap tabular-nums",
        tones[tone],
        className,
      )}
    >
      {children}
    </span>
  );
}

/** Tags: the first two, then how many more. The prefix is de-emphasised. */
export function Chips({ tags, most = 2 }: { tags: readonly string[]; most?: number }) {
  const rest = tags.slice(most);
  return (
    <span className="flex min-w-0 items-center gap-1">
      {tags.slice(0, most).map((tag) => (
        <span key={tag} className="truncate rounded bg-chip px-1.5 font-mono text-11 leading-5 text-ink">
          {tag.startsWith("tag:") ? (
            <>
              <span className="text-ink-3">tag:</span>
              {printable(tag.slice(4))}
            </>
          ) : (
            printable(tag)
          )}
        </span>
      ))}
      {rest.length > 0 && (
        <Tip label={rest.map((tag) => printable(tag)).join(" ")}>
          <span className="rounded bg-chip px-1.5 text-11 leading-5 text-ink-2">{text.common.moreOf(rest.length)}</span>
        </Tip>
      )}
    </span>
  );
}

export function Avatar({ name }: { name: string }) {
  return (
    <span
      className="grid size-5 shrink-0 place-items-center rounded-full bg-chip text-[9px] leading-none font-semibold text-ink-2"
      aria-hidden
    >
      {initials(name)}
    </span>
  );
}

/**
 * A mark for a state: a filled disc for on or for a warning, a ring for off, a red ring for a problem. It needs a label
 * if there is no text next to it.
 */
export function Mark({ state, label }: { state: "on" | "off" | "bad" | "warn"; label?: string }) {
  return (
    <span
      data-mark
      {...(label ? { role: "img", "aria-label": label } : { "aria-hidden": true })}
      className={clsx(
        "inline-block size-2 shrink-0 rounded-full",
        state === "on" && "bg-tick",
        state === "off" && "ring-[1.5px] ring-control ring-inset",
        state === "bad" && "ring-[1.5px] ring-bad ring-inset",
        state === "warn" && "bg-warn",
      )}
    />
  );
}

export function Kbd({ children }: { children: ReactNode }) {
  return (
    <kbd className="inline-flex h-5 min-w-5 items-center justify-center gap-0.5 rounded border border-line bg-surface px-1 font-mono text-11 text-ink-3">
      {children}
    </kbd>
  );
}
