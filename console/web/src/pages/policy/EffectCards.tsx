import { clsx } from "clsx";
import { ArrowRight } from "lucide-react";
import { type ReactNode, useState } from "react";
import type { Node } from "@/api";
import type { TestEntry } from "@/policy";
import { isInternet } from "@/policy/tests";
import { printable } from "@/text";
import { policyForms } from "@/text/en/policyForms";
import { words } from "@/text/policy";
import { Button } from "@/ui";
import type { Document } from "./document";
import { type Group, ruleEnds } from "./effectGroups";
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
  /** The policy in force and the text being edited, to name nodes as the rules do. */
  documents?: { before: Document; after: Document };
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

/** What a part of a change removes and adds, and for how many pairs if the change has several parts. */
interface CardPart {
  lost: string;
  gained: string;
  pairs?: number;
}

interface CardProps {
  from: string;
  to: string;
  /** Who is affected, if the ends are named as in the rule. */
  concerns?: string;
  parts: readonly CardPart[];
  amount?: number;
  lostLines: readonly number[];
  gainedLines: readonly number[];
  actions: EffectActions;
  children?: ReactNode;
}

/** One change: source, destination, what changes, and the lines that cause it. */
function Card({ from, to, concerns, parts, amount, lostLines, gainedLines, actions, children }: CardProps) {
  const t = words.effect;
  const [lost, gained] = [parts.some((part) => part.lost), parts.some((part) => part.gained)];
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
          {concerns && <p className="break-words text-ink-3">{policyForms.effect.concerns(concerns)}</p>}
          {parts.map((part) => (
            <PartWords key={`${part.lost} ${part.gained}`} part={part} />
          ))}
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

function PartWords({ part: { lost, gained, pairs } }: { part: CardPart }) {
  const t = words.effect;
  const say = (what: string) => (pairs === undefined ? what : policyForms.effect.forPairs(what, pairs));
  return (
    <>
      {lost && <p className="text-ink-2">{say(t.loses(lost))}</p>}
      {gained && <p className="text-ink-2">{say(t.gains(gained))}</p>}
    </>
  );
}

/** The ends of a group as the rules name them, or else all affected principals. */
function endsOf<T extends Shift | ShellShift>({ whole, parts }: Group<T>, { documents, node }: EffectActions) {
  const ends = ruleEnds(parts, documents, node);
  const from = principalWords(whole.from);
  if (!ends) return { from, to: principalWords(whole.to), concerns: undefined };
  const named = (names: string[]) => principalWords({ names, count: names.length });
  return { from: named(ends.from), to: named(ends.to), concerns: named(ends.from) === from ? undefined : from };
}

/** Each part as text, with its number of pairs if there are several parts. */
const partsOf = <T extends Shift | ShellShift>(parts: readonly T[], say: (list: T["lost"]) => string): CardPart[] =>
  parts.map((part) => ({
    lost: part.lost.length > 0 ? say(part.lost) : "",
    gained: part.gained.length > 0 ? say(part.gained) : "",
    pairs: parts.length > 1 ? part.pairs : undefined,
  }));

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

export function ShiftCard({ group, actions }: { group: Group<Shift>; actions: EffectActions }) {
  const [open, setOpen] = useState(false);
  const t = words.effect;
  const { whole, parts } = group;
  const { from, to, concerns } = endsOf(group, actions);
  const loses = parts.some((part) => part.lost.length > 0);
  const shown = parts.reduce((sum, part) => sum + part.samples.length, 0);
  return (
    <Card
      from={from}
      to={whole.own && to !== "autogroup:self" ? `${to} (${t.own})` : to}
      concerns={concerns}
      parts={partsOf(parts, (services) => services.join(", "))}
      amount={whole.pairs}
      lostLines={whole.lostLines}
      gainedLines={whole.gainedLines}
      actions={actions}
    >
      <div className="border-t border-hair px-3 py-1.5 text-ink-2">
        <div className="flex min-h-6 items-center gap-2">
          <span className="flex-1">
            {loses && whole.online > 0 ? t.onlineLosers(whole.online) : t.samples(shown, whole.pairs)}
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
        {open && parts.map((part) => <Pairs key={pairsKey(part)} shift={part} actions={actions} />)}
      </div>
    </Card>
  );
}

const pairsKey = (shift: Shift) => JSON.stringify([shift.lost, shift.gained]);

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

export function ShellCard({ group, actions }: { group: Group<ShellShift>; actions: EffectActions }) {
  const t = words.effect;
  const { whole, parts } = group;
  const { from, to, concerns } = endsOf(group, actions);
  const sample = whole.samples[0];
  const make: MakeTest = (rules) =>
    sample ? shellTestOf(whole, actions.node(sample.from.id), actions.node(sample.to.id), rules) : null;
  return (
    <Card
      from={from}
      to={to}
      concerns={concerns}
      parts={partsOf(parts, (users) => t.shellAs(shellWords(users)))}
      amount={whole.pairs}
      lostLines={whole.lostLines}
      gainedLines={whole.gainedLines}
      actions={actions}
    >
      <TestLine make={make} shift={whole} of={[from, to]} actions={actions} />
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
      parts={[{ lost: shift.lost.join(", "), gained: shift.gained.join(", ") }]}
      lostLines={shift.lostLines}
      gainedLines={shift.gainedLines}
      actions={actions}
    >
      <TestLine make={(rules) => routeTestOf(shift, rules)} shift={shift} of={[from, to]} actions={actions} />
    </Card>
  );
}
