/** A single access question, and its answer with the rules behind it. */
import { useQuery } from "@tanstack/react-query";
import { CircleCheck, CircleX, FileCode, FlaskConical, PencilLine, X } from "lucide-react";
import { type FormEvent, useEffect, useId, useState } from "react";
import { type Asked, whyQuery } from "@/access";
import { type PolicyAnswer, type PolicyFinding, useCan, useNodes } from "@/api";
import { useOpenInEditor } from "@/policy";
import { printable, text } from "@/text";
import { accessMap, accessView } from "@/text/access";
import {
  announce,
  Badge,
  Button,
  Delayed,
  IconButton,
  Input,
  relative,
  Select,
  Skeleton,
  useNow,
  useStatus,
  Warning,
} from "@/ui";
import { Combobox } from "@/ui/combobox";
import { type AskProblem, askProblem, destination, nodeAsked, policyName, type Suggestion, suggestions } from "./names";

const t = accessMap.ask;
const formId = "check-access";

/** The form for a question, worded as a sentence. */
export function AskForm({
  asked,
  onAsk,
  all,
  problem,
}: {
  asked: Asked;
  onAsk(asked: Asked): void;
  /** Everything that can be named in a question. */
  all: readonly Suggestion[];
  /** Why the question has no answer. */
  problem: AskProblem | null;
}) {
  const [form, setForm] = useState(asked);
  const port = useId();
  const about = useId();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the address wins when it changes
  useEffect(() => setForm(asked), [asked.from, asked.to, asked.port, asked.proto]);
  const ask = (next: Asked) => {
    const trimmed = { ...next, from: next.from.trim(), to: next.to.trim(), port: next.port.trim() };
    if (trimmed.from && trimmed.to) onAsk(trimmed);
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    ask(form);
  };
  const ports = form.proto !== "icmp";
  // The problem belongs to the question that was sent, not to what has been typed since.
  const wrong = (side: "from" | "to") => (problem?.side === side && form[side].trim() === asked[side] ? problem : null);
  return (
    <form id={formId} onSubmit={submit} aria-label={t.title} className="min-w-0 space-y-3">
      <div className="space-y-0.5">
        <h2 className="text-14 font-semibold">{t.title}</h2>
        <p className="text-12 text-ink-2 max-md:hidden">{accessView.ask.about}</p>
      </div>
      <div className="grid min-w-0 grid-cols-[auto_1fr_auto_1fr] items-center gap-2 text-13 text-ink-2 md:flex md:max-w-[1120px]">
        {(["from", "to"] as const).map((side) => (
          <End
            key={side}
            label={t[side]}
            hint={side === "from" ? t.fromHint : t.toHint}
            value={form[side]}
            onChange={(value) => setForm({ ...form, [side]: value })}
            all={all}
            describedBy={wrong(side) ? about : undefined}
          />
        ))}
        <label htmlFor={port}>{t.port}</label>
        <Input
          id={port}
          className="h-9! min-w-12 md:w-[76px]"
          inputMode="numeric"
          placeholder={t.anyPort}
          disabled={!ports}
          value={ports ? form.port : ""}
          onChange={(e) => setForm({ ...form, port: e.target.value.replace(/\D/g, "").slice(0, 5) })}
        />
        <Select
          aria-label={t.proto}
          className="shrink-0 [&>select]:h-9"
          value={form.proto}
          onChange={(e) =>
            setForm({ ...form, proto: e.target.value, port: e.target.value === "icmp" ? "" : form.port })
          }
        >
          {Object.entries(t.protos).map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </Select>
        <Button look="primary" type="submit" className="h-9!" disabled={!form.from.trim() || !form.to.trim()}>
          {t.submit}
        </Button>
      </div>
      {problem && (!problem.side || wrong(problem.side)) && (
        <div id={about} role="alert" className="flex flex-wrap items-center gap-x-2 gap-y-1 text-13 text-bad">
          <CircleX className="size-4 shrink-0" aria-hidden />
          <span className="min-w-0 break-words">{printable(problem.text, 600)}</span>
          {problem.instead.length > 0 && <span className="text-ink-2">{accessView.ask.instead}</span>}
          {problem.instead.map((name) => (
            <Button key={name} className="h-7!" onClick={() => problem.side && ask({ ...form, [problem.side]: name })}>
              {printable(name)}
            </Button>
          ))}
          {problem.reference && (
            <span className="font-mono text-11 text-ink-3">{text.common.reference(problem.reference)}</span>
          )}
        </div>
      )}
    </form>
  );
}

function End({
  label,
  hint,
  value,
  onChange,
  all,
  describedBy,
}: {
  label: string;
  hint: string;
  value: string;
  onChange(value: string): void;
  all: readonly Suggestion[];
  /** The ID of the error message, if there is one. */
  describedBy: string | undefined;
}) {
  const id = useId();
  return (
    <>
      <label htmlFor={id}>{label}</label>
      <Combobox
        id={id}
        className="md:flex-1 max-md:col-span-3 [&>input]:h-9"
        placeholder={hint}
        value={value}
        onChange={onChange}
        suggest={(typed) => suggestions(typed, all)}
        listLabel={accessView.ask.options}
        aria-invalid={describedBy ? true : undefined}
        aria-describedby={describedBy}
      />
    </>
  );
}

/** Why the question in the URL has no answer; null if it has one, or if none was asked. */
export function useAskProblem(asked: Asked, draft: string | undefined, all: readonly Suggestion[]): AskProblem | null {
  const { data, error } = useQuery({ ...whyQuery(asked, draft), enabled: asked.from !== "" && asked.to !== "" });
  return error && !data ? askProblem(asked, error, all) : null;
}

/** The server's answer to a question. */
export function Answer({ asked, draft, onClose }: { asked: Asked; draft: string | undefined; onClose(): void }) {
  const { data, error } = useQuery(whyQuery(asked, draft));
  const anyPort = !asked.port && asked.proto !== "icmp";
  const verdict = data && (data.allowed ? (anyPort ? t.allowedSome : t.allowed) : t.notAllowed);
  const about = t.sentence(printable(asked.from), printable(asked.to), asked.port);
  useEffect(() => {
    if (verdict) announce(`${verdict}: ${about}`);
  }, [verdict, about]);
  // The form says what is wrong with the question.
  if (error && !data) return null;
  return (
    <section
      aria-label={t.answer}
      className="shrink-0 overflow-y-auto border-b border-line bg-surface px-6 py-4 max-md:px-4 md:max-h-[46vh]"
    >
      {!data || !verdict ? (
        <Delayed>
          <Skeleton className="my-1 w-72" />
        </Delayed>
      ) : (
        <Head
          icon={
            data.allowed ? (
              <CircleCheck className="size-5 text-ok" aria-hidden />
            ) : (
              <CircleX className="size-5 text-bad" aria-hidden />
            )
          }
          title={verdict}
          about={about}
          badge={draft !== undefined ? t.byDraft : ""}
          onClose={() => {
            onClose();
            document.querySelector<HTMLElement>(`#${formId} input`)?.focus();
          }}
        >
          <Offline asked={asked} />
          <Reasons answer={data} />
          <Edits asked={asked} allowed={data.allowed} />
        </Head>
      )}
    </section>
  );
}

function Head({
  icon,
  title,
  about,
  badge,
  children,
  onClose,
}: {
  icon: React.ReactNode;
  title: string;
  about?: string;
  badge?: string;
  children: React.ReactNode;
  onClose(): void;
}) {
  return (
    <div className="flex items-start gap-3">
      <span className="pt-0.5">{icon}</span>
      <div className="min-w-0 flex-1 space-y-2 text-13">
        <div className="flex min-h-6 flex-wrap items-center gap-x-3 gap-y-1">
          <h2 className="text-14 font-semibold">{title}</h2>
          {about && <span className="break-words text-ink-2">{about}</span>}
          {badge && <Badge tone="accent">{badge}</Badge>}
        </div>
        {children}
      </div>
      <IconButton label={t.clear} icon={X} onClick={onClose} className="-mt-1 -mr-2" />
    </div>
  );
}

/** Says which of the nodes are offline, because the policy's answer does not take that into account. */
function Offline({ asked }: { asked: Asked }) {
  const { data } = useNodes();
  const now = useNow();
  const nodes = data?.items ?? [];
  const offline = [nodeAsked(asked.from, nodes), nodeAsked(asked.to, nodes)].filter(
    (node) => node && !node.online && !node.expired,
  );
  return offline.map(
    (node) =>
      node && (
        <Warning key={node.id} className="max-w-[900px]">
          {accessView.ask.offline(printable(node.givenName), relative(node.lastSeen, now))}
        </Warning>
      ),
  );
}

function Reasons({ answer }: { answer: PolicyAnswer }) {
  return (
    <>
      {answer.notes.map((note) => (
        <p key={note} className="text-ink">
          {printable(note)}
        </p>
      ))}
      {!answer.allowed && answer.rules.length > 0 && <p className="text-ink-2">{t.would}</p>}
      <Findings list={answer.rules} />
      {answer.nearest.length > 0 && <p className="text-ink-2">{t.nearest}</p>}
      <Findings list={answer.nearest} />
      {!answer.allowed && answer.rules.length + answer.nearest.length + answer.notes.length === 0 && (
        <p className="text-ink-2">{t.noRule}</p>
      )}
      {answer.at.length > 0 && (
        <p className="text-ink-2">
          {t.through} {answer.at.map((node) => printable(node.name)).join(", ")}
        </p>
      )}
    </>
  );
}

function Findings({ list }: { list: readonly PolicyFinding[] }) {
  const open = useOpenInEditor();
  if (list.length === 0) return null;
  return (
    <ul className="max-w-[900px] divide-y divide-hair rounded-lg border border-line">
      {list.map((finding) => (
        <li
          key={`${finding.line} ${finding.text}`}
          className="flex min-h-11 items-center gap-3 py-1.5 pr-2 pl-3 max-md:flex-wrap"
        >
          {finding.line > 0 && (
            <span className="w-14 shrink-0 font-mono text-12 text-ink-3 tabular-nums max-md:hidden">
              {t.line(finding.line)}
            </span>
          )}
          <span className="min-w-0 flex-1 break-words max-md:basis-full">
            {printable(finding.text, 600)}
            {finding.comment && <span className="block text-12 text-ink-3">{printable(finding.comment)}</span>}
          </span>
          {finding.line > 0 && (
            <Button
              look="ghost"
              icon={FileCode}
              className="max-md:-ml-3"
              onClick={() => void open({ line: finding.line })}
            >
              {t.openLine(finding.line)}
            </Button>
          )}
        </li>
      ))}
    </ul>
  );
}

/** Adds the question to the unsaved draft, as a test or as a rule. */
function Edits({ asked, allowed }: { asked: Asked; allowed: boolean }) {
  const may = useCan()("policy:write");
  const open = useOpenInEditor();
  const { data } = useNodes();
  const status = useStatus();
  if (!may) return null;
  const nodes = data?.items ?? [];
  const src = policyName(asked.from, nodes);
  const dst = [destination(asked.to, asked.port, nodes)];
  const proto = asked.proto || undefined;
  const go = (visit: Parameters<typeof open>[0]) => void open(visit).catch((e) => status.failed(t.failedEdit, e));
  return (
    <div className="flex flex-wrap items-center gap-2 pt-1">
      <Button
        icon={FlaskConical}
        disabled={!asked.port}
        onClick={() => go({ insertTest: allowed ? { src, proto, accept: dst } : { src, proto, deny: dst } })}
      >
        {t.addTest}
      </Button>
      {!allowed && (
        <Button icon={PencilLine} disabled={!asked.port} onClick={() => go({ insertRule: { src: [src], dst, proto } })}>
          {t.draftRule}
        </Button>
      )}
      {!asked.port && <span className="text-12 text-ink-2">{t.needPort}</span>}
    </div>
  );
}
