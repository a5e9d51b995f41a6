/** A form for the most common rule: who reaches what, on which ports. */
import { X } from "lucide-react";
import { type FormEvent, useId, useRef, useState } from "react";
import { addRule, type RuleEntry } from "@/policy/edits";
import { printable } from "@/text";
import { policyForms } from "@/text/en/policyForms";
import { announce, Button, Field, IconButton, Input, Select } from "@/ui";
import { Combobox, type Option } from "@/ui/combobox";
import { focusOnMistake, useBorrowedFocus } from "@/ui/focus";
import type { Document } from "./document";
import { type Network, suggestionsAt } from "./names";
import { inPolicy, nodesNamed, ruleOf } from "./ruleForm";

const t = policyForms.rule;

export default function RuleForm({
  text,
  broken,
  document,
  network,
  onInsert,
  onClose,
}: {
  text: string;
  /** Whether the text has mistakes, so that nothing can be inserted. */
  broken: boolean;
  document: Document;
  network: Network;
  /** Called with the text that contains the rule, and the line of the rule. */
  onInsert(text: string, line: number): void;
  onClose(): void;
}) {
  const [form, setForm] = useState({ who: [] as string[], what: [] as string[], ports: "", proto: "", comment: "" });
  const [sent, setSent] = useState(false);
  const title = useId();
  const place = useRef<HTMLFormElement>(null);
  // Move the focus, because the form is far from the button that opens it.
  useBorrowedFocus(() => place.current?.querySelector("input"));
  const { rule, errors } = ruleOf(form);
  const shown = sent ? errors : {};
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setSent(true);
    if (!rule || broken) return focusOnMistake(place.current);
    const edit = addRule(text, rule);
    onInsert(edit.text, edit.line);
    setForm({ who: [], what: [], ports: "", proto: "", comment: "" });
    setSent(false);
  };
  return (
    <form
      ref={place}
      onSubmit={submit}
      aria-labelledby={title}
      className="space-y-3 rounded-lg border border-line bg-surface px-4 py-3 text-13"
    >
      <div className="flex items-start gap-2">
        <div className="min-w-0 flex-1">
          <h2 id={title} className="text-14 font-semibold">
            {t.title}
          </h2>
          <p className="text-12 text-ink-2">{t.about}</p>
        </div>
        <IconButton label={t.close} icon={X} onClick={onClose} className="-mt-1 -mr-2" />
      </div>
      <Names
        label={t.who}
        hint={t.whoHint}
        error={shown.who}
        names={form.who}
        onChange={(who) => setForm({ ...form, who })}
        offered={(typed) => offered("src", typed, document, network)}
        named={(name) => inPolicy(name, document, network)}
      />
      <Names
        label={t.what}
        hint={t.whatHint}
        error={shown.what}
        names={form.what}
        onChange={(what) => setForm({ ...form, what })}
        offered={(typed) => offered("dst", typed, document, network)}
        named={(name) => inPolicy(name, document, network)}
      />
      <div className="grid grid-cols-[1fr_auto] gap-2">
        <Field label={t.ports} error={shown.ports} hint={shown.ports ? undefined : t.portsHint}>
          {(control) => (
            <Input
              {...control}
              value={form.proto === "icmp" ? "" : form.ports}
              disabled={form.proto === "icmp"}
              placeholder={t.allPorts}
              onChange={(e) => setForm({ ...form, ports: e.target.value })}
            />
          )}
        </Field>
        <Field label={t.proto}>
          {(control) => (
            <Select {...control} value={form.proto} onChange={(e) => setForm({ ...form, proto: e.target.value })}>
              {Object.entries(t.protos).map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </Select>
          )}
        </Field>
      </div>
      <Field label={t.comment} hint={t.commentAbout}>
        {(control) => (
          <Input
            {...control}
            value={form.comment}
            maxLength={200}
            placeholder={t.commentHint}
            onChange={(e) => setForm({ ...form, comment: e.target.value })}
          />
        )}
      </Field>
      {rule && <Preview text={text} broken={broken} rule={rule} />}
      {sent && broken && (
        <p role="alert" className="text-12 text-bad">
          {t.broken}
        </p>
      )}
      <Button type="submit" look="primary">
        {t.submit}
      </Button>
    </form>
  );
}

/** Names that fit a part of a rule and contain a text, with what is known about them. */
const offered = (field: "src" | "dst", typed: string, document: Document, network: Network): Option[] => [
  ...suggestionsAt(["acls", 0, field], false, "", document, network)
    .filter(({ label }) => label.toLowerCase().includes(typed))
    .map(({ label, detail }) => ({ value: label, note: detail })),
  ...nodesNamed(typed, network),
];

/** The lines as they will be inserted. */
function Preview({ text, broken, rule }: { text: string; broken: boolean; rule: RuleEntry }) {
  if (broken) return null;
  const { text: after, line } = addRule(text, rule);
  const lines = after.split("\n").slice(line - (rule.comment ? 2 : 1), line);
  return (
    <figure className="space-y-1.5">
      <figcaption className="text-12 text-ink-2">{t.preview}</figcaption>
      <pre className="rounded-lg border border-line bg-canvas p-2.5 font-mono text-12 break-words whitespace-pre-wrap text-ink">
        {lines.map((one) => printable(one.trim(), 2000)).join("\n")}
      </pre>
    </figure>
  );
}

/** A field for several names: Enter, a comma or a suggestion adds one. */
function Names({
  label,
  hint,
  error,
  names,
  onChange,
  offered,
  named,
}: {
  label: string;
  hint: string;
  error?: string;
  names: readonly string[];
  onChange(names: string[]): void;
  /** The suggestions for a text in lower case. */
  offered(typed: string): readonly Option[];
  /** What the policy uses for a name. */
  named(name: string): readonly string[];
}) {
  const [typed, setTyped] = useState("");
  const add = (added: string) => {
    const more = added
      .split(/[\s,]+/)
      .filter(Boolean)
      .flatMap(named)
      .filter((name) => !names.includes(name));
    if (more.length > 0) {
      onChange([...names, ...new Set(more)]);
      announce(t.added(more.join(", ")));
    }
    setTyped("");
  };
  const suggest = (text: string) => {
    const wanted = text.trim().toLowerCase();
    return offered(wanted)
      .filter(({ value }) => !names.includes(value))
      .slice(0, 40);
  };
  return (
    <Field label={label} error={error}>
      {(control) => (
        <div className="space-y-1.5">
          <Combobox
            {...control}
            placeholder={hint}
            value={typed}
            onChange={(next) => (/[,\s]$/.test(next) ? add(next) : setTyped(next))}
            onChoose={add}
            suggest={suggest}
            listLabel={t.options}
            onEnter={() => {
              if (!typed.trim()) return false;
              add(typed);
              return true;
            }}
            onLeave={() => add(typed)}
          />
          {names.length > 0 && (
            <ul className="flex flex-wrap gap-1">
              {names.map((name) => (
                <li
                  key={name}
                  className="inline-flex h-6 items-center gap-1 rounded bg-chip pr-0.5 pl-1.5 font-mono text-12 max-md:h-8"
                >
                  {printable(name, 80)}
                  <button
                    type="button"
                    aria-label={t.remove(printable(name, 80))}
                    className="grid size-5 place-items-center rounded hover:bg-sunken max-md:size-7"
                    onClick={() => {
                      onChange(names.filter((one) => one !== name));
                      announce(t.removed(name));
                      window.document.getElementById(control.id)?.focus();
                    }}
                  >
                    <X className="size-3" aria-hidden />
                  </button>
                </li>
              ))}
            </ul>
          )}
        </div>
      )}
    </Field>
  );
}
