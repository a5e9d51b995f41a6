import { useNavigate } from "@tanstack/react-router";
import { Copy, EllipsisVertical, FilePlus2, History, ListTree, Plus, Save, ScanSearch, Undo2 } from "lucide-react";
import { useMemo } from "react";
import { type Policy, useCan } from "@/api";
import { replaceDraft } from "@/policy";
import { authorWords } from "@/policy/author";
import { useActions } from "@/shell/actions";
import { text as common } from "@/text";
import { policyForms } from "@/text/en/policyForms";
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
  Tip,
  useMedia,
  useShortcuts,
  useStatus,
  useWrites,
  WriteButton,
} from "@/ui";
import { readDocument, rulesChanged } from "./document";
import { tidied } from "./tidy";
import { type Bench, useDoneWithUndo } from "./useBench";
import type { Verdict } from "./useVerdict";

export interface HeadState {
  readOnly: "file" | "role" | null;
  /** Why it cannot be saved now; empty if it can. */
  obstacle: string;
  review(): void;
}

export function useHead(bench: Bench, policy: Policy | null, verdict: Verdict, open: () => void): HeadState {
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

/** The title of the page, with the actions on the text. */
export function Head({
  bench,
  head,
  marked,
  onMarked,
  onEffect,
  onRule,
  onTemplates,
}: {
  bench: Bench;
  head: HeadState;
  marked: boolean;
  onMarked(on: boolean): void;
  onEffect?(): void;
  onRule(): void;
  onTemplates(): void;
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
  const [rule, templates] = [policyForms.rule.open, policyForms.templates.open];
  useActions([
    { id: "policy-rule", title: `${common.policy.title}: ${rule}`, icon: Plus, run: onRule },
    { id: "policy-templates", title: `${common.policy.title}: ${templates}`, icon: FilePlus2, run: onTemplates },
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
        <Button icon={Plus} onClick={onRule}>
          {rule}
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
        {narrow && (
          <MenuItem icon={Plus} onSelect={onRule}>
            {rule}
          </MenuItem>
        )}
        <MenuItem icon={FilePlus2} onSelect={onTemplates}>
          {templates}
        </MenuItem>
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

/** How the text relates to the saved one. For users who cannot save, nothing counts as unsaved. */
export function standingOf({ dirty, starter, draft }: Bench, { readOnly }: HeadState): string {
  if (!readOnly) return dirty && !starter ? words.unsaved : "";
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

/** Banners that apply to the text as a whole. */
export function Standing({
  bench,
  policy,
  readOnly,
  onMerge,
  onTemplates,
}: {
  bench: Bench;
  policy: Policy | null;
  readOnly: HeadState["readOnly"];
  onMerge(): void;
  onTemplates(): void;
}) {
  return (
    <>
      {readOnly && <Banner>{readOnly === "file" ? words.readOnlyFile : words.readOnlyRole}</Banner>}
      {!policy && (
        <Banner action={<Button onClick={onTemplates}>{policyForms.templates.open}</Button>}>{words.first}</Banner>
      )}
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
