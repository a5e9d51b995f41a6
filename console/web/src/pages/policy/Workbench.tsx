import { lazy, type RefObject, Suspense, useEffect, useMemo, useRef, useState } from "react";
import { ruleText } from "@/access/model";
import { type Policy, useNodes, useUsers } from "@/api";
import { addTest } from "@/policy/edits";
import { useSearchState } from "@/router/search";
import { text as common } from "@/text";
import { policyForms } from "@/text/en/policyForms";
import { words } from "@/text/policy";
import { SidePanel, useMedia, usePageTitle } from "@/ui";
import { CodeEditor, type EditorHandle, type Knowledge } from "./CodeEditor";
import { lineAfter, lineChanges } from "./changes";
import { type Document, readDocument } from "./document";
import type { EffectActions } from "./EffectCards";
import { EffectPanel, useViewer } from "./EffectPanel";
import { Head, Standing, standingOf, useHead } from "./Head";
import { hintsOf } from "./hints";
import { MergeDialog } from "./MergeDialog";
import { meaningOf } from "./names";
import { Problems } from "./Problems";
import type { Found } from "./problems";
import { Review } from "./Review";
import { type Bench, useBench, useDoneWithUndo } from "./useBench";
import { useVerdict } from "./useVerdict";

const noHints: readonly Found[] = [];
const RuleForm = lazy(() => import("./RuleForm"));
const Templates = lazy(() => import("./Templates"));

/** The editor, the effect of its text, and saving. A separate component, because it comes with CodeMirror. */
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
  const [layer, setLayer] = useState<"review" | "merge" | "templates" | null>(null);
  const wide = useMedia("(min-width: 1100px)");
  useEffect(() => {
    if (bench.moved) setLayer((open) => (open === "review" ? null : open));
  }, [bench.moved]);
  const actions = useEffectActions(bench, editor, () => !wide && setSearch({ panel: "" }));
  const head = useHead(bench, policy, verdict, () => setLayer("review"));
  useLineOfAddress(search.line, editor);
  usePageTitle(common.policy.title, standingOf(bench, head));
  const original = policy && search.changes !== "off" ? saved : null;
  const doneWithUndo = useDoneWithUndo();
  const form = search.panel === "rule" && (
    <Suspense>
      <RuleForm
        text={text}
        broken={verdict.problems.length > 0}
        document={document}
        network={{ nodes: nodes ?? [], users: users ?? [] }}
        onInsert={(next, line) => {
          doneWithUndo(policyForms.rule.inserted, bench.replace(next));
          // Wait until the editor has received the text.
          requestAnimationFrame(() => editor.current?.show(line));
        }}
        onClose={() => setSearch({ panel: "" })}
      />
    </Suspense>
  );
  const panel = (
    <div className="space-y-4">
      {form}
      <EffectPanel
        verdict={verdict}
        dirty={dirty}
        tests={document.tests}
        actions={actions}
        viewer={viewer}
        onViewer={setViewer}
      />
    </div>
  );
  return (
    <div className="flex h-full flex-col">
      <Head
        bench={bench}
        head={head}
        marked={search.changes !== "off"}
        onMarked={(on) => setSearch({ changes: on ? "" : "off" })}
        onEffect={wide ? undefined : () => setSearch({ panel: "effect" }, "push")}
        onRule={() => setSearch({ panel: "rule" }, wide ? "replace" : "push")}
        onTemplates={() => setLayer("templates")}
      />
      <Standing
        bench={bench}
        policy={policy}
        readOnly={head.readOnly}
        onMerge={() => setLayer("merge")}
        onTemplates={() => setLayer("templates")}
      />
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
        {!wide && (search.panel === "effect" || search.panel === "rule") && (
          <div className="fixed inset-y-0 right-0 z-30 flex max-w-full shadow-bar">
            <SidePanel title={words.showEffect} onClose={() => setSearch({ panel: "" })}>
              {panel}
            </SidePanel>
          </div>
        )}
      </div>
      {/* A version that somebody else saves in the meantime is not part of the text: the banner asks to merge first. */}
      {layer === "review" && !bench.moved && (
        <Review
          text={text}
          saved={saved}
          etag={etag}
          verdict={verdict}
          actions={{ node: actions.node, lineNow: actions.lineNow, documents: actions.documents }}
          onClose={() => setLayer(null)}
        />
      )}
      {layer === "templates" && (
        <Suspense>
          <Templates
            users={users ?? []}
            viewer={viewer}
            onUse={(next, name) => doneWithUndo(policyForms.templates.used(name), bench.replace(next))}
            onClose={() => setLayer(null)}
          />
        </Suspense>
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

function useEffectActions(bench: Bench, editor: RefObject<EditorHandle | null>, close: () => void): EffectActions {
  const nodes = useNodes().data?.items;
  const doneWithUndo = useDoneWithUndo();
  const byId = useMemo(() => new Map(nodes?.map((node) => [node.id, node])), [nodes]);
  const changes = useMemo(() => lineChanges(bench.saved, bench.text), [bench.saved, bench.text]);
  const before = useMemo(() => readDocument(bench.saved), [bench.saved]);
  return {
    documents: { before, after: bench.document },
    node: (id) => byId.get(id),
    lineNow: (line) => lineAfter(changes, line),
    goTo(line) {
      close();
      // Wait until the closing drawer has returned the focus.
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
