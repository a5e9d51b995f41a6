import { clsx } from "clsx";
import { ArrowRight } from "lucide-react";
import { type ReactNode, useState } from "react";
import type { Node } from "@/api";
import type { TestEntry } from "@/policy";
import { isInternet } from "@/policy/tests";
import { printable } from "@/text";
import { words } from "@/text/policy";
import { Button } from "@/ui";
import {
  principalWords,
  type RouteShift,
  routeTestOf,
  type ShellShift,
  type Shift,
  shellTestOf,
  shellWords,
  testOf,
} from "./effectWords";

/** What the user can do with the parts of an effect, besides reading them. */
export interface EffectActions {
  /** Goes to a line of the text being edited. */
  goTo?(line: number): void;
  /** The line in the text being edited for a line of the policy in force. */
  lineNow?(line: number): number;
  addTest?(test: TestEntry): void;
  /** The text of the rules on these lines: of the policy in force, and of the text being edited. */
  rulesAt?(before: readonly number[], after: readonly number[]): string;
  node(id: string): Node | undefined;
}

/** Creates a test from a change, given the text of the rules that cause it. */
type MakeTest = (rules: string) => TestEntry | null;

function AddTest({
  make,
  shift,
  of,
  actions,
}: {
  make: MakeTest;
  shift: { lostLines: readonly number[]; gainedLines: readonly number[] };
  of: [from: string, to: string];
  actions: EffectActions;
}) {
  const t = words.effect;
  if (!actions.addTest || !make("")) return null;
  const add = () => {
    const test = make(actions.rulesAt?.(shift.lostLines, shift.gainedLines) ?? "");
    if (test) actions.addTest?.(test);
  };
  return (
    <Button look="ghost" className="h-6! px-1.5! text-12!" aria-label={t.addTestFor(...of)} onClick={add}>
      {t.addTest}
    </Button>
  );
}

interface CardProps {
  from: string;
  to: string;
  lost: string;
  gained: string;
  amount?: number;
  lostLines: readonly number[];
  gainedLines: readonly number[];
  actions: EffectActions;
  children?: ReactNode;
}

/** One change: from whom to whom, what, and because of which lines. */
function Card({ from, to, lost, gained, amount, lostLines, gainedLines, actions, children }: CardProps) {
  const t = words.effect;
  const tone = lost ? (gained ? "bg-warn" : "bg-bad") : "bg-tick";
  return (
    <li className="rounded-lg border border-line bg-surface text-12">
      <div className="flex items-start gap-2.5 px-3 py-2.5">
        <span className={clsx("mt-0.5 w-1 self-stretch rounded-full", tone)} aria-hidden />
        <div className="min-w-0 flex-1 space-y-0.5">
          <p className="flex flex-wrap items-center gap-x-1.5 font-mono text-ink">
            <span className="min-w-0 break-words">{from}</span>
            <ArrowRight className="size-3.5 shrink-0 text-ink-3" role="img" aria-label={t.reaches} />
            <span className="min-w-0 break-words">{to}</span>
          </p>
          {lost && <p className="text-ink-2">{t.loses(lost)}</p>}
          {gained && <p className="text-ink-2">{t.gains(gained)}</p>}
          <Lines
            lost={actions.lineNow ? lostLines.map(actions.lineNow) : lostLines}
            gained={gainedLines}
            goTo={actions.goTo}
          />
        </div>
        {amount !== undefined && (
          <span
            className={clsx(
              "shrink-0 font-medium tabular-nums",
              lost ? (gained ? "text-warn" : "text-bad") : "text-ok",
            )}
          >
            {t.pairs(amount)}
          </span>
        )}
      </div>
      {children}
    </li>
  );
}

function Lines({
  lost,
  gained,
  goTo,
}: {
  lost: readonly number[];
  gained: readonly number[];
  goTo?(line: number): void;
}) {
  const t = words.effect;
  const part = (lines: readonly number[], say: (lines: string) => string) => {
    const unique = [...new Set(lines)].filter((line) => line > 0);
    if (unique.length === 0) return null;
    const [before = "", after = ""] = say("\u0000").split("\u0000");
    return (
      <p className="text-ink-2">
        {before}
        {unique.slice(0, 6).map((line, index) => (
          <span key={line}>
            {index > 0 && ", "}
            {goTo ? (
              <button
                type="button"
                className="-my-1 rounded py-1 text-accent-ink underline decoration-line-strong underline-offset-2 hover:decoration-current"
                onClick={() => goTo(line)}
              >
                {t.line(line)}
              </button>
            ) : (
              t.line(line)
            )}
          </span>
        ))}
        {after}
      </p>
    );
  };
  return (
    <>
      {part(lost, t.removedAt)}
      {part(gained, t.allowedAt)}
    </>
  );
}

export function ShiftCard({ shift, actions }: { shift: Shift; actions: EffectActions }) {
  const [open, setOpen] = useState(false);
  const t = words.effect;
  const to = principalWords(shift.to);
  return (
    <Card
      from={principalWords(shift.from)}
      to={shift.own ? `${to} (${t.own})` : to}
      lost={shift.lost.join(", ")}
      gained={shift.gained.join(", ")}
      amount={shift.pairs}
      lostLines={shift.lostLines}
      gainedLines={shift.gainedLines}
      actions={actions}
    >
      <div className="border-t border-hair px-3 py-1.5 text-ink-2">
        <div className="flex min-h-6 items-center gap-2">
          <span className="flex-1">
            {shift.lost.length > 0 && shift.online > 0
              ? t.onlineLosers(shift.online)
              : t.samples(shift.samples.length, shift.pairs)}
          </span>
          <button
            type="button"
            aria-expanded={open}
            className="-mr-1.5 h-6 rounded px-1.5 font-medium text-accent-ink hover:bg-accent-soft"
            onClick={() => setOpen(!open)}
          >
            {open ? t.hidePairs : t.showPairs}
          </button>
        </div>
        {open && <Pairs shift={shift} actions={actions} />}
      </div>
    </Card>
  );
}

function Pairs({ shift, actions }: { shift: Shift; actions: EffectActions }) {
  const t = words.effect;
  return (
    <ul className="pt-1 pb-1">
      {shift.samples.map(({ from, to }) => {
        const make: MakeTest = (rules) => testOf(shift, actions.node(from.id), actions.node(to.id), rules);
        const [a, b] = [printable(from.name), printable(to.name)];
        return (
          <li key={`${from.id} ${to.id}`} className="flex min-h-7 items-center gap-1.5">
            <span className="min-w-0 truncate text-ink">{a}</span>
            <ArrowRight className="size-3 shrink-0 text-ink-3" role="img" aria-label={t.reaches} />
            <span className="min-w-0 flex-1 truncate text-ink">{b}</span>
            <AddTest make={make} shift={shift} of={[a, b]} actions={actions} />
          </li>
        );
      })}
    </ul>
  );
}

const TestLine = (props: Parameters<typeof AddTest>[0]) => (
  <div className="flex justify-end border-t border-hair px-1.5 py-1 empty:hidden">
    <AddTest {...props} />
  </div>
);

export function ShellCard({ shift, actions }: { shift: ShellShift; actions: EffectActions }) {
  const t = words.effect;
  const [from, to] = [principalWords(shift.from), principalWords(shift.to)];
  const sample = shift.samples[0];
  const make: MakeTest = (rules) =>
    sample ? shellTestOf(shift, actions.node(sample.from.id), actions.node(sample.to.id), rules) : null;
  return (
    <Card
      from={from}
      to={to}
      lost={shift.lost.length > 0 ? t.shellAs(shellWords(shift.lost)) : ""}
      gained={shift.gained.length > 0 ? t.shellAs(shellWords(shift.gained)) : ""}
      amount={shift.pairs}
      lostLines={shift.lostLines}
      gainedLines={shift.gainedLines}
      actions={actions}
    >
      <TestLine make={make} shift={shift} of={[from, to]} actions={actions} />
    </Card>
  );
}

export function RouteCard({ shift, actions }: { shift: RouteShift; actions: EffectActions }) {
  const t = words.effect;
  const through = principalWords({ names: shift.through.map((node) => node.name), count: shift.through.length });
  const from = principalWords(shift.from);
  const to = isInternet(shift.prefix) ? t.internet : shift.prefix;
  return (
    <Card
      from={from}
      to={`${to} ${t.through(through)}`}
      lost={shift.lost.join(", ")}
      gained={shift.gained.join(", ")}
      lostLines={shift.lostLines}
      gainedLines={shift.gainedLines}
      actions={actions}
    >
      <TestLine make={(rules) => routeTestOf(shift, rules)} shift={shift} of={[from, to]} actions={actions} />
    </Card>
  );
}
