import { useNavigate } from "@tanstack/react-router";
import { Copy, EllipsisVertical, History, ListTree, Save, ScanSearch, Undo2 } from "lucide-react";
import { type RefObject, useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import { ruleText } from "@/access/model";
import { type Policy, useCan, useNodes, useUsers } from "@/api";
import { type Draft, discardDraft, replaceDraft, useDraft, writeDraft } from "@/policy";
import { authorWords } from "@/policy/author";
import { addTest, firstPolicy } from "@/policy/edits";
import { useSearchState } from "@/router/search";
import { useActions } from "@/shell/actions";
import { text as common } from "@/text";
import { words } from "@/text/policy";
import {
  announce,
  Badge,
  Banner,
  Button,
  copyText,
  IconButton,
  Menu,
  MenuCheck,
  MenuItem,
  PageHead,
  SidePanel,
  Tip,
  useMedia,
  usePageTitle,
  useShortcuts,
  useStatus,
  useWrites,
  WriteButton,
} from "@/ui";
import { CodeEditor, type EditorHandle, type Knowledge } from "./CodeEditor";
import { lineAfter, lineChanges } from "./changes";
import { type Document, readDocument, rulesChanged } from "./document";
import type { EffectActions } from "./Effect";
import { EffectPanel, useViewer } from "./EffectPanel";
import { hintsOf } from "./hints";
import { MergeDialog } from "./MergeDialog";
import { meaningOf } from "./names";
import { Problems } from "./Problems";
import type { Found } from "./problems";
import { Review } from "./Review";
import { tidied } from "./tidy";
import { useVerdict, type Verdict } from "./useVerdict";

const noHints: readonly Found[] = [];

interface Bench {
  text: string;
  saved: string;
  draft: Draft | null;
  /** The text is another than the one in force. */
  dirty: boolean;
  /** Somebody saved another version since the draft was begun. */
  moved: boolean;
  document: Document;
  change(text: string): void;
  /** The same, with the way back. */
  replace(text: string): () => boolean;
}

/** The text that is being written, and what it began as. */
function useBench(policy: Policy | null): Bench {
  const draft = useDraft();
  const saved = policy?.policy ?? "";
  const version = policy?.version ?? "0";
  const text = draft?.text ?? (policy ? saved : firstPolicy);
  const read = useDeferredValue(text);
  const document = useMemo(() => readDocument(read), [read]);
  const moved = draft !== null && draft.base !== version && draft.text !== saved;
  useEffect(() => {
    if (draft && policy && draft.text === saved) discardDraft();
  }, [draft, policy, saved]);
  const asDraft = (next: string) => (policy && next === saved ? null : { base: draft?.base ?? version, text: next });
  return {
    text,
    saved,
    draft,
    dirty: text !== saved,
    moved,
    document,
    change: (next) => writeDraft(asDraft(next)),
    replace: (next) => replaceDraft(asDraft(next)),
  };
}

/** The editor, what its text would do, and the way to save it. It comes with CodeMirror, so that it is a part of its own. */
export default function Workbench({ policy, etag }: { policy: Policy | null; etag: string | null }) {
  const [search, setSearch] = useSearchState({ line: "", changes: "", panel: "" });
  const bench = useBench(policy);
  const { text, saved, document, dirty } = bench;
  const nodes = useNodes().data?.items;
  const users = useUsers().data?.items;
  const editor = useRef<EditorHandle>(null);
  const knowledge = useKnowledge(document, nodes, users);
  const [viewer, setViewer] = useViewer();
  const verdict = useVerdict(text, policy?.version ?? "0", viewer, nodes?.length ?? 0);
  const hints = useMemo(
    () => (verdict.problems.length > 0 ? noHints : hintsOf(document, { nodes: nodes ?? [], users: users ?? [] })),
    [verdict.problems, document, nodes, users],
  );
  const [literal, setLiteral] = useState("");
  const [layer, setLayer] = useState<"review" | "merge" | null>(null);
  const wide = useMedia("(min-width: 1100px)");
  useEffect(() => {
    if (bench.moved) setLayer((open) => (open === "review" ? null : open));
  }, [bench.moved]);
  const actions = useEffectActions(bench, editor, () => setSearch({ panel: "" }));
  const head = useHead(bench, policy, verdict, () => setLayer("review"));
  useLineOfAddress(search.line, editor);
  usePageTitle(common.policy.title, standingOf(bench, head));
  const original = policy && search.changes !== "off" ? saved : null;
  const panel = (
    <EffectPanel
      verdict={verdict}
      dirty={dirty}
      tests={document.tests}
      actions={actions}
      viewer={viewer}
      onViewer={setViewer}
    />
  );
  return (
    <div className="flex h-full flex-col">
      <Head
        bench={bench}
        head={head}
        marked={search.changes !== "off"}
        onMarked={(on) => setSearch({ changes: on ? "" : "off" })}
        onEffect={wide ? undefined : () => setSearch({ panel: "effect" }, "push")}
      />
      <Standing bench={bench} policy={policy} readOnly={head.readOnly} onMerge={() => setLayer("merge")} />
      <div className="flex min-h-0 flex-1">
        <div className="flex min-h-0 min-w-0 flex-1 flex-col">
          <div className="min-h-0 flex-1">
            <CodeEditor
              ref={editor}
              text={text}
              original={original}
              problems={verdict.problems}
              hints={hints}
              knowledge={knowledge}
              onChange={bench.change}
              onLiteral={setLiteral}
              onSave={head.review}
            />
          </div>
          <Problems
            problems={verdict.problems}
            hints={hints}
            settled={verdict.settled}
            failed={verdict.error !== null}
            meaning={literal ? meaningOf(literal, document, { nodes: nodes ?? [], users: users ?? [] }) : null}
            goTo={(line, column) => editor.current?.goTo(line, column)}
          />
        </div>
        {wide && (
          <aside
            aria-label={words.effect.title}
            className="w-[440px] shrink-0 overflow-y-auto border-l border-line bg-canvas p-4 pb-10"
          >
            {panel}
          </aside>
        )}
        {!wide && search.panel === "effect" && (
          <div className="fixed inset-y-0 right-0 z-30 flex max-w-full shadow-bar">
            <SidePanel title={words.showEffect} onClose={() => setSearch({ panel: "" })}>
              {panel}
            </SidePanel>
          </div>
        )}
      </div>
      {/* What somebody else saves while this is open was not made part of the text: the banner asks to merge first. */}
      {layer === "review" && !bench.moved && (
        <Review
          text={text}
          saved={saved}
          etag={etag}
          verdict={verdict}
          actions={{ node: actions.node, lineNow: actions.lineNow }}
          onClose={() => setLayer(null)}
        />
      )}
      {layer === "merge" && bench.draft && policy && (
        <MergeDialog key={policy.version} draft={bench.draft} policy={policy} onClose={() => setLayer(null)} />
      )}
    </div>
  );
}

function useKnowledge(
  document: Document,
  nodes: Knowledge["network"]["nodes"] | undefined,
  users: Knowledge["network"]["users"] | undefined,
): RefObject<Knowledge> {
  const knowledge = useRef<Knowledge>({ document, network: { nodes: [], users: [] } });
  knowledge.current = { document, network: { nodes: nodes ?? [], users: users ?? [] } };
  return knowledge;
}

function useDoneWithUndo() {
  const status = useStatus();
  return (done: string, back: () => boolean) =>
    status.done(done, () => {
      if (!back()) status.failed(words.undoLate, words.undoLateWhy);
    });
}

function useEffectActions(bench: Bench, editor: RefObject<EditorHandle | null>, close: () => void): EffectActions {
  const nodes = useNodes().data?.items;
  const doneWithUndo = useDoneWithUndo();
  const byId = useMemo(() => new Map(nodes?.map((node) => [node.id, node])), [nodes]);
  const changes = useMemo(() => lineChanges(bench.saved, bench.text), [bench.saved, bench.text]);
  return {
    node: (id) => byId.get(id),
    lineNow: (line) => lineAfter(changes, line),
    goTo(line) {
      close();
      // A drawer that closes gives the focus back first.
      requestAnimationFrame(() => editor.current?.goTo(line));
    },
    rulesAt: (before, after) =>
      [...before.map((line) => ruleText(bench.saved, line)), ...after.map((line) => ruleText(bench.text, line))].join(
        " ",
      ),
    addTest(test) {
      doneWithUndo(words.effect.testAdded, bench.replace(addTest(bench.text, test).text));
    },
  };
}

function useLineOfAddress(line: string, editor: RefObject<EditorHandle | null>) {
  useEffect(() => {
    if (/^\d+$/.test(line)) editor.current?.goTo(Number(line));
  }, [line, editor]);
}

interface HeadState {
  readOnly: "file" | "role" | null;
  /** Why it cannot be saved now; empty when it can. */
  obstacle: string;
  review(): void;
}

function useHead(bench: Bench, policy: Policy | null, verdict: Verdict, open: () => void): HeadState {
  const can = useCan();
  const { now } = useWrites("policy:write");
  const readOnly = policy && policy.updatedAt === null ? "file" : can("policy:write") ? null : "role";
  const t = words.obstacles;
  const obstacle = !bench.dirty
    ? t.nothing
    : bench.moved
      ? t.moved
      : policy?.confirmBy
        ? words.save.onTrial
        : verdict.problems.length > 0
          ? t.problems
          : "";
  const review = () => {
    if (readOnly || !now) return;
    if (obstacle) return announce(obstacle);
    if (verdict.onRequest) verdict.ask();
    open();
  };
  return { readOnly, obstacle, review };
}

function Head({
  bench,
  head,
  marked,
  onMarked,
  onEffect,
}: {
  bench: Bench;
  head: HeadState;
  marked: boolean;
  onMarked(on: boolean): void;
  onEffect?(): void;
}) {
  const navigate = useNavigate();
  const status = useStatus();
  const doneWithUndo = useDoneWithUndo();
  const narrow = useMedia("(max-width: 1023px)");
  const discard = () => doneWithUndo(words.discarded, replaceDraft(null));
  const format = () => {
    const after = tidied(bench.text);
    if (after === bench.text) return status.done(words.formatNothing);
    doneWithUndo(words.formatted, bench.replace(after));
  };
  const versions = () => void navigate({ to: "/policy/versions" });
  const discards = bench.draft !== null;
  const group = common.shell.groups.page;
  useShortcuts([
    { keys: "Mod+S", label: words.review, group, run: head.review },
    { keys: "Mod+F", label: words.find, group },
    { keys: "F8", label: words.nextProblem, group },
  ]);
  useActions([
    { id: "policy-format", title: `${common.policy.title}: ${words.format}`, icon: ListTree, run: format },
    { id: "policy-versions", title: `${common.policy.title}: ${words.versions}`, icon: History, run: versions },
    { id: "policy-review", title: `${common.policy.title}: ${words.review}`, icon: Save, run: head.review },
  ]);
  return (
    <PageHead title={<Title bench={bench} head={head} short={narrow} />} below={<div className="h-3" />}>
      {onEffect && narrow && <IconButton label={words.showEffect} icon={ScanSearch} onClick={onEffect} />}
      {onEffect && !narrow && (
        <Button icon={ScanSearch} onClick={onEffect}>
          {words.showEffect}
        </Button>
      )}
      {!narrow && (
        <Button icon={History} onClick={versions}>
          {words.versions}
        </Button>
      )}
      {!narrow && discards && <Button onClick={discard}>{words.discard}</Button>}
      <SaveButton bench={bench} head={head} label={narrow ? words.reviewShort : words.review} />
      <Menu label={words.more} trigger={<IconButton label={words.more} icon={EllipsisVertical} className="-mr-2" />}>
        <MenuItem icon={ListTree} onSelect={format}>
          {words.format}
        </MenuItem>
        <MenuCheck checked={marked} onChange={onMarked}>
          {words.showChanges}
        </MenuCheck>
        {narrow && (
          <MenuItem icon={History} onSelect={versions}>
            {words.versions}
          </MenuItem>
        )}
        {narrow && discards && (
          <MenuItem icon={Undo2} danger onSelect={discard}>
            {words.discard}
          </MenuItem>
        )}
      </Menu>
    </PageHead>
  );
}

/** What the text is beside the saved one; nothing of who cannot save is unsaved. */
function standingOf({ dirty, draft }: Bench, { readOnly }: HeadState): string {
  if (!readOnly) return dirty ? words.unsaved : "";
  return draft ? words.tried : "";
}

function Title({ bench, head, short }: { bench: Bench; head: HeadState; short: boolean }) {
  const { document, saved } = bench;
  const standing = standingOf(bench, head);
  const before = useMemo(() => readDocument(saved), [saved]);
  const rules = useMemo(() => rulesChanged(before, document), [before, document]);
  return (
    <span className="flex items-center gap-3">
      {common.policy.title}
      {standing && (
        <Badge tone="accent" className="tracking-normal">
          {rules > 0 && !short && !head.readOnly ? words.unsavedRules(rules) : standing}
        </Badge>
      )}
    </span>
  );
}

function SaveButton({ bench, head, label }: { bench: Bench; head: HeadState; label: string }) {
  const status = useStatus();
  if (head.readOnly) {
    const copy = async () => {
      if (await copyText(bench.text)) status.done(words.copied);
      else status.failed(words.copyFailed, common.common.copyByHand);
    };
    return (
      <Button icon={Copy} look={bench.dirty ? "primary" : "plain"} onClick={() => void copy()}>
        {words.copy}
      </Button>
    );
  }
  if (!head.obstacle) {
    return (
      <WriteButton right="policy:write" look="primary" icon={Save} onClick={head.review}>
        {label}
      </WriteButton>
    );
  }
  return (
    <Tip label={head.obstacle}>
      <Button look="primary" icon={Save} aria-disabled onClick={head.review}>
        {label}
      </Button>
    </Tip>
  );
}

/** What holds for the text as a whole. */
function Standing({
  bench,
  policy,
  readOnly,
  onMerge,
}: {
  bench: Bench;
  policy: Policy | null;
  readOnly: HeadState["readOnly"];
  onMerge(): void;
}) {
  return (
    <>
      {readOnly && <Banner>{readOnly === "file" ? words.readOnlyFile : words.readOnlyRole}</Banner>}
      {!policy && <Banner>{words.first}</Banner>}
      {bench.moved && policy && (
        <div role="alert">
          <Banner tone="warn" action={<Button onClick={onMerge}>{words.moved.open}</Button>}>
            {words.moved.banner(policy.version, authorWords(policy.author, common.policy.key))}
          </Banner>
        </div>
      )}
    </>
  );
}
