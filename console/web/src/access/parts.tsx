import { Link } from "@tanstack/react-router";
import { clsx } from "clsx";
import { Minus, Plus } from "lucide-react";
import { type AccessPrincipal, useCan } from "@/api";
import { useOpenInEditor } from "@/policy";
import { printable, text } from "@/text";
import { accessMap } from "@/text/access";
import { type Change, splitName } from "./model";

const t = accessMap;

/** The name of a principal, with its kind de-emphasised. A node or a user links to its page. */
export function PrincipalName({ principal, link }: { principal: AccessPrincipal; link?: boolean }) {
  const can = useCan();
  const { kind, name } = splitName(principal);
  const prefixed = principal.kind === "group" || principal.kind === "tag" || principal.kind === "internet";
  const words = printable(prefixed ? name : principal.name);
  const label = prefixed ? (
    <span className="truncate font-mono text-12">
      <span className="text-ink-3">{kind}:</span>
      {words}
    </span>
  ) : (
    <span className={clsx("truncate", principal.kind === "route" && "font-mono text-12")}>{words}</span>
  );
  if (link && principal.kind === "node" && principal.id && can("nodes:read"))
    return (
      <Link to="/nodes/$id" params={{ id: principal.id }} className="flex min-w-0 hover:underline">
        {label}
      </Link>
    );
  if (link && principal.kind === "user" && principal.id && can("users:read"))
    return (
      <Link to="/users/$id" params={{ id: principal.id }} className="flex min-w-0 hover:underline">
        {label}
      </Link>
    );
  return <span className="flex min-w-0">{label}</span>;
}

/** Line numbers of the policy, each a link to the editor. */
export function RuleLines({ lines, most = 4 }: { lines: readonly number[]; most?: number }) {
  const open = useOpenInEditor();
  if (lines.length === 0) return <span className="text-ink-3">{t.ask.noLine}</span>;
  return (
    <span className="flex items-center gap-1">
      {lines.slice(0, most).map((line) => (
        <button
          key={line}
          type="button"
          aria-label={t.ask.openLine(line)}
          onClick={() => void open({ line })}
          className="inline-flex h-6 min-w-6 items-center justify-center rounded bg-chip px-1.5 font-mono text-11 text-ink-2 tabular-nums hover:text-ink hover:underline"
        >
          {line}
        </button>
      ))}
      {lines.length > most && <span className="text-12 text-ink-3">{text.common.moreOf(lines.length - most)}</span>}
    </span>
  );
}

const signs = {
  gained: { icon: Plus, look: "text-ok" },
  lost: { icon: Minus, look: "text-bad" },
};

/**
 * Plus for what a draft adds, minus for what it removes, both for a change. Screen readers skip it, so the text next to
 * it must say the same.
 */
export function ChangeSign({ change, className }: { change: Change; className?: string }) {
  if (!change) return null;
  const shown = change === "changed" ? (["gained", "lost"] as const) : ([change] as const);
  return (
    <span className={clsx("inline-flex shrink-0", className)}>
      {shown.map((one) => {
        const { icon: Icon, look } = signs[one];
        return <Icon key={one} className={clsx("size-3", look)} strokeWidth={3} aria-hidden />;
      })}
    </span>
  );
}
