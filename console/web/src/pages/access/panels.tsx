/** Details next to the map: a pair of principals down to their nodes, or a rule with its text. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { clsx } from "clsx";
import { FileCode, FlaskConical, MessageCircleQuestion } from "lucide-react";
import { type ReactNode, useMemo } from "react";
import {
  type AccessRow,
  accessQuery,
  ChangeSign,
  changeOf,
  lineOf,
  PrincipalName,
  RuleLines,
  rowsOf,
  ruleText,
  shortPorts,
  sinceQuery,
} from "@/access";
import { type AccessRule, useCan, useNodes, usePolicy } from "@/api";
import { type TestEntry, useOpenInEditor } from "@/policy";
import { authorWords } from "@/policy/author";
import { printable, text } from "@/text";
import { accessMap } from "@/text/access";
import { Badge, Button, CopyButton, Delayed, ErrorState, IconButton, SidePanel, Skeleton, Time, useStatus } from "@/ui";
import { ruleId } from "./flow";
import { testOfRow } from "./names";
import { withoutSecondNames } from "./tidyMap";

const t = accessMap;
const mostNodes = 100;

const Section = ({ title, children }: { title: string; children: ReactNode }) => (
  <section className="space-y-2">
    <h3 className="text-12 font-medium text-ink-2">{title}</h3>
    {children}
  </section>
);

export function CellPanel({
  from,
  to,
  row,
  draft,
  onAsk,
  onRule,
  onClose,
}: {
  from: string;
  to: string;
  row: AccessRow | undefined;
  draft: string | undefined;
  onAsk(from: string, to: string): void;
  onRule(rule: AccessRule): void;
  onClose(): void;
}) {
  const title = `${printable(from)} → ${printable(to)}`;
  const tests = useTests();
  const test = row && tests.of(row);
  return (
    <SidePanel title={title} onClose={onClose}>
      <div className="space-y-6 text-13">
        {!row ? (
          <p className="text-ink-2">{t.noAccess[0]?.toUpperCase() + t.noAccess.slice(1)}</p>
        ) : (
          <CellFacts row={row} onRule={onRule} />
        )}
        <div className="flex flex-wrap gap-2 empty:hidden">
          {askable(from) && askable(to) && (
            <Button icon={MessageCircleQuestion} onClick={() => onAsk(from, to)}>
              {t.panel.ask}
            </Button>
          )}
          {test && (
            <Button icon={FlaskConical} onClick={() => tests.add(test)}>
              {t.ask.addTest}
            </Button>
          )}
        </div>
        {row && <CellNodes from={from} to={to} draft={draft} each={!test} />}
      </div>
    </SidePanel>
  );
}

/** Creates tests from rows, if the user may edit the policy. */
function useTests() {
  const may = useCan()("policy:write");
  const open = useOpenInEditor();
  const status = useStatus();
  const nodes = useNodes().data?.items;
  return {
    of: (row: AccessRow) => (may && nodes ? testOfRow(row, nodes) : null),
    add: (insertTest: TestEntry) => void open({ insertTest }).catch((e) => status.failed(t.ask.failedEdit, e)),
  };
}

/** Whether `why` accepts a name: not a prefix and not one of our own labels. */
const askable = (name: string) => !name.includes("/") && !name.startsWith("autogroup:") && name !== "other users";

function CellFacts({ row, onRule }: { row: AccessRow; onRule(rule: AccessRule): void }) {
  const { cell } = row;
  return (
    <>
      <dl className="grid grid-cols-[120px_1fr] gap-x-3 gap-y-2">
        {cell.ports.length > 0 && <Fact name={t.panel.ports}>{cell.ports.join(", ")}</Fact>}
        <Fact name={t.panel.pairs}>
          <span className="tabular-nums">{t.of(cell.pairs, cell.of)}</span>
          {cell.own && <span className="text-ink-2">, {t.ownHint.toLowerCase()}</span>}
        </Fact>
        {cell.gained.length > 0 && (
          <Fact name={t.panel.gained}>
            <ChangeSign change="gained" className="mr-1" />
            {cell.gained.join(", ")}
          </Fact>
        )}
        {cell.lost.length > 0 && (
          <Fact name={t.panel.lost}>
            <ChangeSign change="lost" className="mr-1" />
            {cell.lost.join(", ")}
          </Fact>
        )}
      </dl>
      <Section title={t.panel.rules}>
        <ul className="divide-y divide-hair rounded-lg border border-line">
          {row.rules.map((use) => (
            <li key={ruleId(use.rule)} className="flex items-center gap-3 px-3 py-2">
              <button
                type="button"
                className="min-w-0 flex-1 rounded text-left hover:underline"
                onClick={() => onRule(use.rule)}
              >
                <RuleWords rule={use.rule} />
              </button>
              {use.rule.change !== "removed" && lineOf(use.rule) > 0 && <RuleLines lines={[lineOf(use.rule)]} />}
            </li>
          ))}
        </ul>
      </Section>
    </>
  );
}

const Fact = ({ name, children }: { name: string; children: ReactNode }) => (
  <>
    <dt className="text-ink-2">{name}</dt>
    <dd className="min-w-0 break-words">{children}</dd>
  </>
);

function RuleWords({ rule }: { rule: AccessRule }) {
  const words =
    lineOf(rule) === 0 && !rule.change
      ? t.panel.ruleNowhereBody
      : `${rule.from.join(", ")} → ${rule.to.map((to) => `${to.name} ${shortPorts(to.ports)}`).join(", ")}`;
  return (
    <span className="block min-w-0">
      {rule.comment && <span className="block break-words">{printable(rule.comment)}</span>}
      <span className={rule.comment ? "block text-12 break-words text-ink-2" : "block break-words"}>
        {printable(words, 400)}
      </span>
      {rule.change && (
        <Badge tone={rule.change === "added" ? "ok" : "bad"} className="mt-1">
          {rule.change === "added" ? t.panel.added : t.panel.removed}
        </Badge>
      )}
    </span>
  );
}

function CellNodes({
  from,
  to,
  draft,
  each,
}: {
  from: string;
  to: string;
  draft: string | undefined;
  /** Whether to offer a test for each pair, because a single test cannot cover all of them. */
  each: boolean;
}) {
  const { data, error, refetch, isPlaceholderData } = useQuery(
    accessQuery({ from: [from], to: [to], by: "nodes", policy: draft }),
  );
  const rows = useMemo(() => (data ? rowsOf(data) : []), [data]);
  const tests = useTests();
  if (error && !data) return <ErrorState title={t.failed} error={error} onRetry={() => void refetch()} />;
  return (
    <Section title={t.panel.nodesTitle}>
      {!data || isPlaceholderData ? (
        <Delayed>
          <Skeleton className="w-2/3" />
        </Delayed>
      ) : (
        <>
          <ul className="divide-y divide-hair rounded-lg border border-line">
            {rows.slice(0, mostNodes).map((row) => {
              const test = each ? tests.of(row) : null;
              return (
                <li
                  key={row.id}
                  className={clsx("flex min-h-9 items-center gap-2 py-1 pl-3", test ? "pr-1.5" : "pr-3")}
                >
                  <ChangeSign change={changeOf(row.cell)} />
                  <FromTo row={row} />
                  <span className="w-20 shrink-0 truncate text-right font-mono text-11 text-ink-2">
                    {shortPorts(row.cell.pairs > 0 ? row.cell.ports : row.cell.lost)}
                  </span>
                  {test && (
                    <IconButton
                      icon={FlaskConical}
                      label={t.panel.addTestFor(printable(row.from.name), printable(row.to.name))}
                      className="md:size-6!"
                      onClick={() => tests.add(test)}
                    />
                  )}
                </li>
              );
            })}
          </ul>
          {rows.length + data.moreCells > mostNodes && (
            <p className="text-12 text-ink-2">{t.panel.moreNodes(rows.length + data.moreCells - mostNodes)}</p>
          )}
        </>
      )}
    </Section>
  );
}

/** The version that added a rule, and who saved it. */
function Since({ rule, inForce }: { rule: string; inForce: string | undefined }) {
  const { data } = useQuery({ ...sinceQuery(rule, inForce ?? ""), enabled: inForce !== undefined });
  if (!data) return null;
  const { version, sure } = data;
  return (
    <Fact name={t.panel.since}>
      <Link
        to="/policy/versions/$version"
        params={{ version: version.version }}
        className="text-accent-ink hover:underline"
      >
        {sure ? t.panel.version(version.version) : t.panel.versionOrBefore(version.version)}
      </Link>
      {sure && (
        <span className="text-ink-2">
          , {authorWords(version.author, text.policy.key)}, <Time at={version.savedAt} />
        </span>
      )}
      {sure && version.reason && <span className="block text-ink-2">{printable(version.reason, 300)}</span>}
    </Fact>
  );
}

export function RulePanel({
  rule,
  rows,
  draft,
  onClose,
}: {
  rule: AccessRule;
  rows: readonly AccessRow[];
  draft: string | undefined;
  onClose(): void;
}) {
  const { data } = usePolicy();
  const open = useOpenInEditor();
  const saved = data?.policy?.policy ?? "";
  const line = lineOf(rule);
  const source = ruleText(rule.change === "removed" ? saved : (draft ?? saved), line);
  const uses = withoutSecondNames(rows).filter((row) => row.rules.some((use) => ruleId(use.rule) === ruleId(rule)));
  return (
    <SidePanel title={line > 0 ? t.panel.rule(line) : t.panel.ruleNowhere} onClose={onClose}>
      <div className="space-y-6 text-13">
        {rule.change && (
          <Badge tone={rule.change === "added" ? "ok" : "bad"}>
            {rule.change === "added" ? t.panel.added : t.panel.removed}
          </Badge>
        )}
        {rule.comment && <p className="break-words">{printable(rule.comment)}</p>}
        {line === 0 && !rule.change && <p className="text-ink-2">{t.panel.ruleNowhereBody}</p>}
        <dl className="grid grid-cols-[120px_1fr] gap-x-3 gap-y-2">
          <Fact name={t.panel.who}>
            <span className="font-mono text-12">{printable(rule.from.join(", "), 400)}</span>
          </Fact>
          <Fact name={t.panel.whom}>
            {rule.to.map((to) => (
              <span key={to.name} className="block">
                <span className="font-mono text-12">{printable(to.name)}</span>{" "}
                <span className="text-ink-2">{to.ports.join(", ")}</span>
              </span>
            ))}
          </Fact>
          {rule.via.length > 0 && <Fact name={t.panel.via}>{rule.via.join(", ")}</Fact>}
          {source && rule.change !== "added" && <Since rule={source} inForce={data?.policy?.version} />}
        </dl>
        {source && (
          <Section title={t.panel.text}>
            <pre className="rounded-lg border border-line bg-canvas p-3 font-mono text-12 break-words whitespace-pre-wrap">
              {source.split("\n").map((one) => `${printable(one, 2000)}\n`)}
            </pre>
            <div className="flex items-center gap-2">
              {rule.change !== "removed" && (
                <Button icon={FileCode} onClick={() => void open({ line })}>
                  {t.ask.openLine(line)}
                </Button>
              )}
              <CopyButton value={source} what={t.panel.text.toLowerCase()} />
            </div>
          </Section>
        )}
        <Section title={t.panel.pairs}>
          <ul className="divide-y divide-hair rounded-lg border border-line">
            {uses.slice(0, mostNodes).map((row) => {
              const use = row.rules.find((one) => ruleId(one.rule) === ruleId(rule));
              return (
                <li key={row.id} className="flex min-h-9 items-center gap-2 px-3 py-1">
                  <FromTo row={row} />
                  <span className="w-20 shrink-0 text-right text-12 text-ink-2 tabular-nums">
                    {t.pairs(use?.after || use?.before || 0)}
                  </span>
                </li>
              );
            })}
          </ul>
        </Section>
      </div>
    </SidePanel>
  );
}

const FromTo = ({ row }: { row: AccessRow }) => (
  <span className="grid min-w-0 flex-1 grid-cols-[minmax(0,1fr)_auto_minmax(0,1fr)] items-center gap-2">
    <PrincipalName principal={row.from} link />
    <span className="text-ink-3" aria-hidden>
      →
    </span>
    <PrincipalName principal={row.to} link />
  </span>
);
