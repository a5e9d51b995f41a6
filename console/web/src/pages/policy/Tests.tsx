import { clsx } from "clsx";
import { ChevronDown, CircleCheck, CircleX, FlaskConical } from "lucide-react";
import { useId, useState } from "react";
import type { PolicyTestFailure } from "@/api";
import { printable } from "@/text";
import { words } from "@/text/policy";
import { type TestLine, testResults } from "./document";
import { failureWords } from "./effectWords";

/** The tests in the text, and which of them pass. */
export function Tests({
  tests,
  failures,
  goTo,
}: {
  tests: readonly TestLine[];
  failures: readonly PolicyTestFailure[];
  goTo?(line: number): void;
}) {
  const t = words.tests;
  const id = useId();
  const [folded, setFolded] = useState<boolean | null>(null);
  const results = testResults(tests, failures);
  const failing = results.filter((result) => result.failures.length > 0).length;
  // Failures expand it; the user can collapse it again.
  const open = folded === null ? failing > 0 : !folded;
  return (
    <section className={clsx("rounded-lg border bg-surface text-12", failing > 0 ? "border-bad" : "border-line")}>
      <h3>
        <button
          type="button"
          aria-expanded={open}
          aria-controls={id}
          disabled={tests.length === 0}
          onClick={() => setFolded(open)}
          className="flex w-full items-center gap-2.5 rounded-lg px-3 py-2.5 text-left -outline-offset-2"
        >
          <FlaskConical className={clsx("size-4 shrink-0", failing > 0 ? "text-bad" : "text-ink-3")} aria-hidden />
          <span className="flex-1 font-medium">{t.title}</span>
          {tests.length > 0 && (
            <span className={clsx("font-medium tabular-nums", failing > 0 ? "text-bad" : "text-ok")}>
              {t.pass(results.length - failing, results.length)}
            </span>
          )}
          {tests.length > 0 && <ChevronDown className={clsx("size-4 text-ink-3", open && "rotate-180")} aria-hidden />}
        </button>
      </h3>
      {tests.length === 0 && <p className="px-3 pb-2.5 text-ink-2">{t.none}</p>}
      {open && tests.length > 0 && (
        <ul id={id} className="border-t border-hair py-1">
          {results.map((result) => (
            <TestRow key={result.line} result={result} goTo={goTo} />
          ))}
        </ul>
      )}
    </section>
  );
}

function TestRow({ result, goTo }: { result: ReturnType<typeof testResults>[number]; goTo?(line: number): void }) {
  const t = words.tests;
  const bad = result.failures.length > 0;
  const Icon = bad ? CircleX : CircleCheck;
  const on = result.dst.length > 0 ? `${result.dst.join(", ")} ` : "";
  const claims = [
    ...(result.accept.length > 0 ? [t.accept(on + result.accept.join(", "))] : []),
    ...(result.deny.length > 0 ? [t.deny(on + result.deny.join(", "))] : []),
  ];
  return (
    <li className="flex items-start gap-2.5 px-3 py-1.5">
      <Icon
        className={clsx("mt-px size-4 shrink-0", bad ? "text-bad" : "text-ok")}
        role="img"
        aria-label={bad ? t.fails : t.passes}
      />
      <div className="min-w-0 flex-1 break-words">
        <p>
          <span className="font-mono text-ink">{printable(result.src)}</span>{" "}
          <span className="text-ink-2">{printable(claims.join("; "), 300)}</span>
        </p>
        {result.failures.map((failure) => (
          <p key={failure.text} className="text-bad">
            {failureWords(failure.text)}
          </p>
        ))}
      </div>
      {goTo && (
        <button
          type="button"
          className="-my-1 shrink-0 rounded px-1 py-1 text-accent-ink hover:bg-accent-soft"
          aria-label={words.problems.go(result.line)}
          onClick={() => goTo(result.line)}
        >
          {words.effect.line(result.line)}
        </button>
      )}
    </li>
  );
}
