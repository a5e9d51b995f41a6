import { useQuery } from "@tanstack/react-query";
import { useId, useMemo, useState } from "react";
import { type Policy, policyVersionQuery } from "@/api";
import { type Draft, discardDraft, writeDraft } from "@/policy";
import { text as common } from "@/text";
import { words } from "@/text/policy";
import { Button, Dialog, Skeleton } from "@/ui";
import { type Choice, mergedText, mergeLines, outdented, type Part } from "./changes";
import { DiffView } from "./DiffView";

/** Merges a draft with what somebody else saved in the meantime. Nothing is discarded unless the user decides to. */
export function MergeDialog({ draft, policy, onClose }: { draft: Draft; policy: Policy; onClose(): void }) {
  const t = words.moved;
  const fromNothing = draft.base === "0";
  const base = useQuery({ ...policyVersionQuery(draft.base), enabled: !fromNothing });
  const baseText = fromNothing ? "" : base.isError ? policy.policy : base.data?.policy;
  const parts = useMemo(
    () => (baseText === undefined ? null : mergeLines(baseText, draft.text, policy.policy)),
    [baseText, draft.text, policy.policy],
  );
  const conflicts = parts?.filter((part) => "mine" in part) ?? [];
  const [choices, setChoices] = useState<(Choice | undefined)[]>([]);
  const undecided = conflicts.some((_, index) => !choices[index]);
  const merged = useMemo(() => (parts ? mergedText(parts, choices) : ""), [parts, choices]);
  const accept = () => {
    if (!parts || undecided) return;
    if (merged === policy.policy) discardDraft();
    else writeDraft({ base: policy.version, text: merged });
    onClose();
  };
  return (
    <Dialog
      title={t.title(policy.version)}
      wide
      onClose={onClose}
      onSubmit={accept}
      footer={
        <>
          <Button onClick={onClose}>{common.common.cancel}</Button>
          <Button type="submit" look="primary" disabled={!parts || undecided}>
            {t.submit}
          </Button>
        </>
      }
    >
      {!parts && <Skeleton className="h-24! w-full" />}
      {base.isError && <p className="text-warn">{t.lost}</p>}
      {parts && <p>{conflicts.length === 0 ? t.clean : t.conflicts(conflicts.length)}</p>}
      {conflicts.map((part, index) => (
        <Conflict
          // biome-ignore lint/suspicious/noArrayIndexKey: the order never changes
          key={index}
          part={part}
          title={t.conflict(index + 1, conflicts.length)}
          choice={choices[index]}
          onChoice={(choice) => setChoices((before) => Object.assign([...before], { [index]: choice }))}
        />
      ))}
      {parts && (
        <>
          <h3 className="pt-1 text-13 font-medium text-ink">{t.result}</h3>
          <DiffView before={policy.policy} text={merged} label={t.result} className="max-h-[36vh] overflow-y-auto!" />
        </>
      )}
    </Dialog>
  );
}

function Conflict({
  part,
  title,
  choice,
  onChoice,
}: {
  part: Part;
  title: string;
  choice: Choice | undefined;
  onChoice(choice: Choice): void;
}) {
  const t = words.moved;
  const name = useId();
  if (!("mine" in part)) return null;
  const options: [Choice, string, string[]][] = [
    ["mine", t.mine, part.mine],
    ["theirs", t.theirs, part.theirs],
  ];
  const radio = (value: Choice, label: string) => (
    <label className="flex min-h-6 items-center gap-2 font-medium text-ink">
      <input
        type="radio"
        name={name}
        className="size-4 accent-accent"
        checked={choice === value}
        onChange={() => onChoice(value)}
      />
      {label}
    </label>
  );
  return (
    <fieldset className="rounded-lg border border-line-strong p-3">
      <legend className="px-1 text-12 text-ink-2">{title}</legend>
      <div className="grid gap-3 md:grid-cols-2">
        {options.map(([value, label, lines]) => (
          <div key={value} className="min-w-0 space-y-1.5">
            {radio(value, label)}
            <pre className="max-h-40 overflow-auto rounded-md bg-chip px-2.5 py-1.5 font-mono text-12 break-words whitespace-pre-wrap text-ink">
              {lines.length > 0 ? outdented(lines) : t.nothing}
            </pre>
          </div>
        ))}
      </div>
      <div className="pt-2">{radio("both", t.both)}</div>
    </fieldset>
  );
}
