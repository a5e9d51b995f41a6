import { clsx } from "clsx";
import { Check, Info, type LucideIcon, Minus, Plus, ShieldAlert, TriangleAlert } from "lucide-react";
import { type ReactNode, useMemo } from "react";
import type { PolicyEffect } from "@/api";
import { entry, printable, text } from "@/text";
import { policyForms } from "@/text/en/policyForms";
import { words } from "@/text/policy";
import { readDocument } from "./document";
import { type EffectActions, RouteCard, ShellCard, ShiftCard } from "./EffectCards";
import { groupsByRule } from "./effectGroups";
import { changesNothing } from "./effectWords";

/** Who gains and who loses access through an edit. */
export function Effect({
  effect,
  actions,
  of = "edit",
}: {
  effect: PolicyEffect;
  actions: EffectActions;
  /**
   * The context of the effect: hints are shown for a text being edited, open connections for a change about to be
   * saved.
   */
  of?: "edit" | "save" | "past";
}) {
  const t = words.effect;
  const shifts = useMemo(() => groupsByRule(effect.shifts), [effect.shifts]);
  const shells = useMemo(() => groupsByRule(effect.shells), [effect.shells]);
  return (
    <div className="space-y-3">
      {of !== "past" && <Guards guards={effect.guards} />}
      <Figures effect={effect} />
      {effect.truncated && <Remark icon={TriangleAlert}>{t.truncated}</Remark>}
      {changesNothing(effect) && <p className="text-13 text-ink-2">{t.nothing}</p>}
      {effect.shifts.length > 0 && (
        <ul className="space-y-2">
          {shifts.map((group, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the list is always replaced as a whole
            <ShiftCard key={index} group={group} actions={actions} />
          ))}
        </ul>
      )}
      <More count={effect.moreShifts} />
      {effect.losers > 0 && of !== "past" && (
        <Remark icon={TriangleAlert}>{effect.losersOnline > 0 ? t.open(effect.losersOnline) : t.openNobody}</Remark>
      )}
      {effect.shells.length > 0 && (
        <Section title={t.shells}>
          {shells.map((group, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the list is always replaced as a whole
            <ShellCard key={index} group={group} actions={actions} />
          ))}
          <More count={effect.moreShells} />
        </Section>
      )}
      {effect.routes.length > 0 && (
        <Section title={t.routes}>
          {effect.routes.map((shift, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the list is always replaced as a whole
            <RouteCard key={index} shift={shift} actions={actions} />
          ))}
          <More count={effect.moreRoutes} />
        </Section>
      )}
      {of === "edit" && <Notes notes={effect.notes} />}
    </div>
  );
}

/** The effect of one stored text compared with another. */
export function PastEffect({
  effect,
  before,
  after,
  node,
}: {
  effect: PolicyEffect;
  before: string;
  after: string;
  node: EffectActions["node"];
}) {
  const documents = useMemo(() => ({ before: readDocument(before), after: readDocument(after) }), [before, after]);
  return <Effect effect={effect} actions={{ node, documents }} of="past" />;
}

/** Important warnings: a box for each kind. */
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

/** The pairs that lose and gain something. A pair that swaps one port for another counts in both. */
function Figures({ effect }: { effect: PolicyEffect }) {
  const t = words.effect;
  const { losing, gaining } = effect;
  const keep = losing - effect.lost;
  const had = gaining - effect.gained;
  const figures: [number, string, string, LucideIcon, string][] = [
    [
      losing,
      t.lose(losing),
      keep > 0 ? policyForms.effect.keepSome(keep) : "",
      Minus,
      losing > 0 ? "text-bad" : "text-ink-2",
    ],
    [
      gaining,
      t.gain(gaining),
      had > 0 ? policyForms.effect.hadSome(had) : "",
      Plus,
      gaining > 0 ? "text-ok" : "text-ink-2",
    ],
    [effect.unchanged, t.same(effect.unchanged), "", Check, "text-ink-2"],
  ];
  return (
    <dl className="grid grid-cols-3 gap-2">
      {figures.map(([value, label, detail, Icon, colour]) => (
        <div
          key={label}
          className="flex flex-col-reverse justify-end rounded-lg border border-line bg-surface px-3 py-2.5"
        >
          <dt className="text-12 text-ink-2">
            {label}
            {detail && <span className="block text-11 text-ink-3">{detail}</span>}
          </dt>
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
