import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { History, RotateCcw, Undo2 } from "lucide-react";
import { lazy, type ReactNode, Suspense, useId, useMemo, useState } from "react";
import { type Policy, type PolicyVersion, policyVersionQuery, useCan, useNodes, usePolicy } from "@/api";
import { type Draft, readDraft, writeDraft } from "@/policy";
import { authorWords } from "@/policy/author";
import { useSearchState } from "@/router/search";
import { printable, text } from "@/text";
import { words } from "@/text/policy";
import {
  Button,
  Confirm,
  Delayed,
  Empty,
  ErrorState,
  linkButton,
  PageHead,
  Select,
  Skeleton,
  Tabs,
  Time,
  useMedia,
  usePageTitle,
  useStatus,
} from "@/ui";
import { Lines, Pairs, Standing, useStep } from "./parts";
import { versionsQuery } from "./steps";

const t = words.history;
const DiffView = lazy(async () => ({ default: (await import("../policy/DiffView")).DiffView }));
const PastEffect = lazy(async () => ({ default: (await import("../policy/Effect")).PastEffect }));
const panel = "version-text";
const none: readonly PolicyVersion[] = [];

export function PolicyVersionPage() {
  const { version } = useParams({ from: "/policy/versions/$version" });
  const { data, error, refetch } = useQuery({ ...policyVersionQuery(version), enabled: useCan()("policy:read") });
  const inForce = usePolicy().data?.policy?.version;
  const narrow = useMedia("(max-width: 767px)");
  const title = text.policy.versionTitle(version);
  usePageTitle(title);
  if (!data && error)
    return (
      <>
        <PageHead title={title} />
        <ErrorState title={t.failed} error={error} onRetry={() => void refetch()} />
      </>
    );
  return (
    <div className="flex h-full flex-col">
      <PageHead
        title={
          <span className="flex items-center gap-3">
            {narrow ? t.titleShort(version) : title}
            {data && <Standing version={data} inForce={inForce} />}
          </span>
        }
        below={data ? <Facts version={data} /> : <div className="h-3" />}
      >
        <Link to="/policy/versions" aria-label={words.versions} className={linkButton()}>
          <History className="size-4" aria-hidden />
          <span className="max-md:hidden">{words.versions}</span>
        </Link>
        {data && <UndoChange version={data} />}
        {data && <Restore version={data} />}
      </PageHead>
      {data ? <Content version={data} /> : <Waiting />}
    </div>
  );
}

function Facts({ version }: { version: Policy }) {
  const fact = (title: string, value: ReactNode) => (
    <div className="flex min-w-0 items-baseline gap-1.5">
      <dt className="shrink-0 text-ink-3">{title}</dt>
      <dd className="min-w-0 break-words">{value}</dd>
    </div>
  );
  return (
    <div className="space-y-1 pt-2 pb-3 text-12">
      <p className="text-13 break-words">
        {version.reason ? printable(version.reason, 600) : <span className="text-ink-3">{t.noReason}</span>}
      </p>
      <dl className="flex flex-wrap items-center gap-x-6 gap-y-1">
        {fact(t.author, authorWords(version.author, text.policy.key))}
        {fact(t.time, <Time at={version.savedAt} />)}
        {fact(t.lines, <Lines version={version.version} />)}
        {fact(t.pairs, <Pairs version={version.version} />)}
      </dl>
    </div>
  );
}

/** Opens a text in the editor as a draft, after asking if that replaces another one. */
function useNewDraft() {
  const navigate = useNavigate();
  const status = useStatus();
  const [asked, setAsked] = useState<{ draft: Draft; done: string } | null>(null);
  const write = (draft: Draft, done: string) => {
    writeDraft(draft);
    status.done(done);
    void navigate({ to: "/policy" });
  };
  const start = (draft: Draft, done: string) => {
    const now = readDraft();
    if (now !== null && now.text !== draft.text) setAsked({ draft, done });
    else write(draft, done);
  };
  const dialog = asked && (
    <Confirm
      title={t.restoreTitle}
      submit={t.restoreSubmit}
      onSubmit={() => write(asked.draft, asked.done)}
      onClose={() => setAsked(null)}
    >
      <p>{t.restoreBody}</p>
    </Confirm>
  );
  return { start, dialog };
}

/** Restores the text as a draft, which is reviewed and saved like any other. */
function Restore({ version }: { version: Policy }) {
  const can = useCan();
  const policy = usePolicy().data?.policy;
  const narrow = useMedia("(max-width: 767px)");
  const { start, dialog } = useNewDraft();
  if (!can("policy:write") || !version.policy || version.policy === policy?.policy) return null;
  const restore = () => start({ base: policy?.version ?? "0", text: version.policy }, t.restored(version.version));
  return (
    <>
      <Button look="primary" icon={RotateCcw} onClick={restore}>
        {narrow ? t.restoreShort : t.restore(version.version)}
      </Button>
      {dialog}
    </>
  );
}

/** Drafts the active policy without the changes of this version. Later changes are kept. */
function UndoChange({ version }: { version: Policy }) {
  const can = useCan();
  const status = useStatus();
  const policy = usePolicy().data?.policy;
  const before = useTextOf(String(Number(version.version) - 1));
  const narrow = useMedia("(max-width: 767px)");
  const { start, dialog } = useNewDraft();
  if (!can("policy:write") || !policy || !version.policy || !before || before === version.policy) return null;
  const undo = async () => {
    const { withoutChange } = await import("../policy/changes");
    const left = withoutChange(before, version.policy, policy.policy);
    if (left === policy.policy) status.failed(t.undoNothing(version.version), t.undoNothingHint);
    // The editor offers to merge a draft of an older version with the active one.
    else if (left === null) start({ base: version.version, text: before }, t.undoConflict(version.version));
    else start({ base: policy.version, text: left }, t.undid(version.version));
  };
  return (
    <>
      <Button icon={Undo2} onClick={() => void undo()}>
        {narrow ? t.undoShort : t.undo}
      </Button>
      {dialog}
    </>
  );
}

function Content({ version }: { version: Policy }) {
  const [search, setSearch] = useSearchState({ view: "changes", with: "" });
  const versions = useQuery(versionsQuery).data ?? none;
  const chosen = versions.find((one) => one.version === search.with && one.version !== version.version)?.version ?? "";
  const other = chosen || String(Number(version.version) - 1);
  const before = useTextOf(other);
  const view = search.view === "text" ? "text" : "changes";
  if (!version.policy && before === "" && !chosen) return <Empty icon={History} title={t.noText} />;
  return (
    <div className="flex min-h-0 flex-1 max-[1099px]:flex-col max-[1099px]:overflow-y-auto">
      <div className="flex min-h-0 min-w-0 flex-1 flex-col bg-surface max-[1099px]:min-h-[40vh] max-[1099px]:flex-none">
        <div className="flex shrink-0 flex-wrap items-center gap-x-4 border-b border-line px-6 max-md:px-4">
          <Tabs
            label={t.title}
            tabs={[
              { value: "changes", label: t.view.changes },
              { value: "text", label: t.view.text },
            ]}
            value={view}
            onChange={(next) => setSearch({ view: next })}
            panel={panel}
          />
          <Compare
            version={version.version}
            versions={versions}
            other={other}
            onChoose={(one) => setSearch({ with: one })}
          />
        </div>
        <div id={panel} role="tabpanel" aria-labelledby={`${panel}-${view}`} className="min-h-0 flex-1">
          <Suspense fallback={<Waiting />}>
            {before !== undefined && (
              <DiffView
                before={view === "text" ? null : before}
                text={version.policy}
                label={text.policy.versionTitle(version.version)}
                className="h-full rounded-none! border-0!"
              />
            )}
          </Suspense>
        </div>
      </div>
      <aside
        aria-label={t.effect}
        className="w-[440px] shrink-0 overflow-y-auto border-l border-line p-4 pb-10 max-[1099px]:w-full max-[1099px]:overflow-visible max-[1099px]:border-t max-[1099px]:border-l-0"
      >
        <EffectThen version={version} other={chosen} before={before ?? ""} />
      </aside>
    </div>
  );
}

const Waiting = () => (
  <Delayed>
    <Skeleton className="m-6 h-40! max-md:m-4" />
  </Delayed>
);

/** Selects the version to compare with; the previous one by default. */
function Compare({
  version,
  versions,
  other,
  onChoose,
}: {
  version: string;
  versions: readonly PolicyVersion[];
  other: string;
  onChoose(other: string): void;
}) {
  const id = useId();
  const inForce = usePolicy().data?.policy?.version;
  const before = String(Number(version) - 1);
  return (
    <div className="flex min-w-0 items-center gap-2 py-1.5 text-12 text-ink-2 md:ml-auto">
      <label htmlFor={id} className="shrink-0">
        {t.compare.with}
      </label>
      <Select
        id={id}
        className="w-60 min-w-0"
        value={other}
        onChange={(e) => onChoose(e.target.value === before ? "" : e.target.value)}
      >
        {before === "0" && <option value={before}>{t.compare.nothing}</option>}
        {versions
          .filter((one) => one.version !== version)
          .map((one) => (
            <option key={one.version} value={one.version}>
              {t.compare.choice(
                one.version,
                one.version === inForce ? t.inForce : one.version === before ? t.compare.before : "",
                printable(one.reason, 60),
              )}
            </option>
          ))}
      </Select>
    </div>
  );
}

/** The text of a version; empty before the first. */
function useTextOf(version: string): string | undefined {
  const { data } = useQuery({ ...policyVersionQuery(version), enabled: version !== "0" });
  return version === "0" ? "" : data?.policy;
}

/** The effect of a version compared with the previous one, or with another. */
function EffectThen({ version, other, before }: { version: Policy; other: string; before: string }) {
  const { data } = useStep(version.version, other || undefined);
  const nodes = useNodes().data?.items;
  const byId = useMemo(() => new Map(nodes?.map((node) => [node.id, node])), [nodes]);
  return (
    <div className="space-y-3">
      <div>
        <h2 className="text-14 font-semibold">{other ? t.compare.effect(other) : t.effect}</h2>
        <p className="text-12 text-ink-2">{other ? t.compare.effectHint(version.version, other) : t.effectHint}</p>
      </div>
      {data && !data.effect && <p className="text-ink-2">{t.unknown}</p>}
      {data?.effect && (
        <Suspense>
          <PastEffect effect={data.effect} before={before} after={version.policy} node={(id) => byId.get(id)} />
        </Suspense>
      )}
    </div>
  );
}
