import { clsx } from "clsx";
import {
  ArrowRight,
  Check,
  Info,
  type LucideIcon,
  Minus,
  Plus,
  ShieldAlert,
  Shuffle,
  TriangleAlert,
} from "lucide-react";
import { type ReactNode, useState } from "react";
import type { Node, PolicyEffect } from "@/api";
import type { TestEntry } from "@/policy";
import { isInternet } from "@/policy/tests";
import { entry, printable, text } from "@/text";
import { words } from "@/text/policy";
import { Button } from "@/ui";
import {
  changesNothing,
  principalWords,
  type RouteShift,
  routeTestOf,
  type ShellShift,
  type Shift,
  shellTestOf,
  shellWords,
  testOf,
} from "./effectWords";

/** What the parts of an effect can do beside being read. */
export interface EffectActions {
  /** Shows a line of the text that is being written. */
  goTo?(line: number): void;
  /** Where a line of the text in force is in it. */
  lineNow?(line: number): number;
  addTest?(test: TestEntry): void;
  /** The text of the rules on lines: of the text in force, and of the one that is being written. */
  rulesAt?(before: readonly number[], after: readonly number[]): string;
  node(id: string): Node | undefined;
}

/** Who gains and who loses access by an edit. */
export function Effect({
  effect,
  actions,
  of = "edit",
}: {
  effect: PolicyEffect;
  actions: EffectActions;
  /** Notes are about a text that is being edited, and open connections about a change that is to come. */
  of?: "edit" | "save" | "past";
}) {
  const t = words.effect;
  return (
    <div className="space-y-3">
      {of !== "past" && <Guards guards={effect.guards} />}
      <Figures effect={effect} />
      {effect.truncated && <Remark icon={TriangleAlert}>{t.truncated}</Remark>}
      {changesNothing(effect) && <p className="text-13 text-ink-2">{t.nothing}</p>}
      {effect.shifts.length > 0 && (
        <ul className="space-y-2">
          {effect.shifts.map((shift, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the list comes anew as a whole
            <ShiftCard key={index} shift={shift} actions={actions} />
          ))}
        </ul>
      )}
      <More count={effect.moreShifts} />
      {effect.losers > 0 && of !== "past" && (
        <Remark icon={TriangleAlert}>{effect.losersOnline > 0 ? t.open(effect.losersOnline) : t.openNobody}</Remark>
      )}
      {effect.shells.length > 0 && (
        <Section title={t.shells}>
          {effect.shells.map((shift, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the list comes anew as a whole
            <ShellCard key={index} shift={shift} actions={actions} />
          ))}
          <More count={effect.moreShells} />
        </Section>
      )}
      {effect.routes.length > 0 && (
        <Section title={t.routes}>
          {effect.routes.map((shift, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the list comes anew as a whole
            <RouteCard key={index} shift={shift} actions={actions} />
          ))}
          <More count={effect.moreRoutes} />
        </Section>
      )}
      {of === "edit" && <Notes notes={effect.notes} />}
    </div>
  );
}

/** What nobody should miss: a box for each kind of warning. */
export function Guards({ guards }: { guards: PolicyEffect["guards"] }) {
  const kinds = [...new Set(guards.map((guard) => guard.kind))];
  return kinds.map((kind) => (
    <div
      key={kind}
      role="alert"
      className="flex items-start gap-2.5 rounded-lg border border-bad bg-bad-soft px-3 py-2.5 text-bad"
    >
      <ShieldAlert className="mt-0.5 size-4 shrink-0" aria-hidden />
      <div className="min-w-0 break-words">
        <p className="text-13 font-semibold">{entry(words.guards.title, kind) ?? words.guards.other}</p>
        <ul className="text-13">
          {guards
            .filter((guard) => guard.kind === kind)
            .map((guard) => (
              <li key={guard.text}>{sentence(guard.text)}</li>
            ))}
        </ul>
      </div>
    </div>
  ));
}

const sentence = (said: string) => {
  const shown = printable(said, 600);
  return `${shown.charAt(0).toUpperCase()}${shown.slice(1)}.`;
};

function Figures({ effect }: { effect: PolicyEffect }) {
  const t = words.effect;
  const figures: [number, string, LucideIcon, string][] = [
    [effect.lost, t.lose(effect.lost), Minus, effect.lost > 0 ? "text-bad" : "text-ink-2"],
    [effect.gained, t.gain(effect.gained), Plus, effect.gained > 0 ? "text-ok" : "text-ink-2"],
    [effect.unchanged, t.same(effect.unchanged), Check, "text-ink-2"],
  ];
  if (effect.changed > 0) figures.splice(2, 0, [effect.changed, t.change(effect.changed), Shuffle, "text-warn"]);
  return (
    <dl className={clsx("grid gap-2", effect.changed > 0 ? "grid-cols-2" : "grid-cols-3")}>
      {figures.map(([value, label, Icon, colour]) => (
        <div
          key={label}
          className="flex flex-col-reverse justify-end rounded-lg border border-line bg-surface px-3 py-2.5"
        >
          <dt className="text-12 text-ink-2">{label}</dt>
          <dd className={clsx("flex items-center gap-1 text-18 font-semibold tabular-nums", colour)}>
            <Icon className="size-4" aria-hidden />
            {text.common.count(value)}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="space-y-2 pt-1">
      <h3 className="text-12 font-medium text-ink-2">{title}</h3>
      <ul className="space-y-2">{children}</ul>
    </section>
  );
}

function Remark({ icon: Icon, children }: { icon: LucideIcon; children: ReactNode }) {
  return (
    <p className="flex items-start gap-2.5 rounded-lg bg-warn-soft px-3 py-2.5 text-13 text-warn">
      <Icon className="mt-0.5 size-4 shrink-0" aria-hidden />
      <span className="min-w-0">{children}</span>
    </p>
  );
}

const More = ({ count }: { count: number }) =>
  count > 0 ? <p className="text-12 text-ink-2">{words.effect.moreShifts(count)}</p> : null;

/** Makes a test of a change; of the text of its rules only what the person has asked for. */
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

/** One change: from whom to whom, what, by which lines. */
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

function ShiftCard({ shift, actions }: { shift: Shift; actions: EffectActions }) {
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

function ShellCard({ shift, actions }: { shift: ShellShift; actions: EffectActions }) {
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

function RouteCard({ shift, actions }: { shift: RouteShift; actions: EffectActions }) {
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

export function Notes({ notes }: { notes: readonly string[] }) {
  if (notes.length === 0) return null;
  return (
    <section className="rounded-lg border border-line bg-surface px-3 py-2.5 text-12">
      <h3 className="flex items-center gap-2 font-medium">
        <Info className="size-4 text-ink-3" aria-hidden />
        {words.effect.notes}
      </h3>
      <ul className="mt-1 space-y-1 pl-6 text-ink-2">
        {notes.map((note) => (
          <li key={note} className="break-words">
            {sentence(note)}
          </li>
        ))}
      </ul>
    </section>
  );
}
