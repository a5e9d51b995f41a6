import { CircleAlert, CircleCheck, LoaderCircle } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { printable } from "@/text";
import { words } from "@/text/policy";
import { announce } from "@/ui";
import { useFoot } from "@/ui/foot";
import type { Found } from "./problems";

const most = 50;

/** The problems of the text, below the editor, and what the name under the cursor means. */
export function Problems({
  problems,
  hints,
  settled,
  failed,
  meaning,
  goTo,
}: {
  problems: readonly Found[];
  /** Valid, but probably unintended. These do not prevent saving. */
  hints: readonly Found[];
  settled: boolean;
  failed: boolean;
  meaning: { name: string; says: string } | null;
  goTo(line: number, column: number): void;
}) {
  const t = words.problems;
  const [open, setOpen] = useState(false);
  const listed = problems.length > 0 ? problems : open ? hints : [];
  const state = problems.length > 0 ? t.count(problems.length) : failed ? t.unchecked : settled ? t.none : t.checking;
  useAnnounced(state === t.checking ? null : state);
  const [Icon, colour] =
    problems.length > 0
      ? ([CircleAlert, "text-bad"] as const)
      : settled && !failed
        ? ([CircleCheck, "text-ok"] as const)
        : ([LoaderCircle, "text-ink-3"] as const);
  return (
    <section
      ref={useFoot<HTMLElement>()}
      aria-label={t.title}
      className="shrink-0 border-t border-line bg-canvas text-12"
    >
      <div className="flex h-9 items-center gap-2 px-4">
        <Icon className={`size-4 shrink-0 ${colour}`} aria-hidden />
        <span className={problems.length > 0 ? "font-medium text-bad" : "text-ink-2"}>{state}</span>
        {problems.length === 0 && hints.length > 0 && (
          <button
            type="button"
            aria-expanded={open}
            className="-my-1 h-6 rounded px-1.5 font-medium text-warn hover:bg-warn-soft"
            onClick={() => setOpen(!open)}
          >
            {words.hints.count(hints.length)}
          </button>
        )}
        {meaning && (
          <span className="ml-auto min-w-0 truncate text-ink-2">
            <span className="font-mono text-ink">{printable(meaning.name, 60)}</span> {printable(meaning.says, 120)}
          </span>
        )}
      </div>
      {listed.length > 0 && (
        <ul className="max-h-36 overflow-y-auto border-t border-hair py-1">
          {listed.slice(0, most).map((problem) => (
            <li key={`${problem.line} ${problem.column} ${problem.text}`}>
              <button
                type="button"
                className="flex w-full items-start gap-3 px-4 py-1 text-left -outline-offset-2 hover:bg-sunken"
                onClick={() => goTo(problem.line, problem.column)}
              >
                <span className="w-20 shrink-0 font-mono text-accent-ink">
                  {problem.line > 0 ? t.place(problem.line, problem.column) : t.whole}
                </span>
                <span className="min-w-0 break-words text-ink">{printable(problem.text, 600)}</span>
              </button>
            </li>
          ))}
          {listed.length > most && <li className="px-4 py-1 text-ink-2">{t.more(listed.length - most)}</li>}
        </ul>
      )}
    </section>
  );
}

/** Announces results that differ from the one before. Every edit is checked, so there are many. */
function useAnnounced(result: string | null) {
  const told = useRef<string | null>(null);
  useEffect(() => {
    if (result === null || result === told.current) return;
    if (told.current !== null) announce(result);
    told.current = result;
  }, [result]);
}
