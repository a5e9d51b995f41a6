/** The list of policy versions, and the details of one. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { ArrowLeft, History } from "lucide-react";
import { useCallback, useMemo } from "react";
import { type PolicyVersion, useCan, usePolicy } from "@/api";
import { authorWords } from "@/policy/author";
import { useSearchState } from "@/router/search";
import { printable, text } from "@/text";
import { words } from "@/text/policy";
import { type Column, DataTable, Empty, ErrorState, linkButton, PageHead, Time, usePageTitle } from "@/ui";
import { Lines, Pairs, Standing } from "./parts";
import { versionsQuery } from "./steps";

export { PolicyVersionPage } from "./Version";

const t = words.history;
const rowId = (version: PolicyVersion) => version.version;
const rowName = (version: PolicyVersion) => text.policy.versionTitle(version.version);
const byVersion = (a: PolicyVersion, b: PolicyVersion) => Number(a.version) - Number(b.version);
const newestFirst = (a: PolicyVersion, b: PolicyVersion) => byVersion(b, a);
const none: readonly PolicyVersion[] = [];

export function PolicyVersionsPage() {
  const { data, error, refetch } = useQuery({ ...versionsQuery, enabled: useCan()("policy:read") });
  const inForce = usePolicy().data?.policy?.version;
  const navigate = useNavigate();
  const [search, setSearch] = useSearchState({ sort: "" });
  const columns = useMemo(() => versionColumns(inForce), [inForce]);
  const open = useCallback(
    ({ version }: PolicyVersion) => void navigate({ to: "/policy/versions/$version", params: { version } }),
    [navigate],
  );
  usePageTitle(t.title);
  return (
    <div className="flex h-full flex-col">
      <PageHead title={t.title} below={<div className="h-3" />}>
        <Link to="/policy" className={linkButton()}>
          <ArrowLeft className="size-4" aria-hidden />
          {t.back}
        </Link>
      </PageHead>
      {error && !data ? (
        <ErrorState title={t.failed} error={error} onRetry={() => void refetch()} />
      ) : (
        <DataTable
          label={t.title}
          columns={columns}
          rows={data ?? none}
          loading={!data}
          empty={
            <Empty icon={History} title={t.empty}>
              {t.emptyBody}
            </Empty>
          }
          rowId={rowId}
          rowName={rowName}
          sort={search.sort}
          onSort={(sort) => setSearch({ sort })}
          usual={newestFirst}
          asked=""
          onOpen={open}
          phone={(version) => <PhoneRow version={version} inForce={inForce} />}
        />
      )}
    </div>
  );
}

function versionColumns(inForce: string | undefined): Column<PolicyVersion>[] {
  return [
    {
      id: "version",
      title: t.version,
      width: 168,
      fixed: true,
      sort: byVersion,
      cell: (version) => (
        <span className="flex items-center gap-2">
          <Link
            to="/policy/versions/$version"
            params={{ version: version.version }}
            aria-label={rowName(version)}
            className="rounded font-medium tabular-nums hover:underline"
          >
            {version.version}
          </Link>
          <Standing version={version} inForce={inForce} />
        </span>
      ),
    },
    {
      id: "reason",
      title: t.reason,
      cell: ({ reason }) =>
        reason ? (
          <span className="block truncate">{printable(reason, 300)}</span>
        ) : (
          <span className="text-ink-3">{t.noReason}</span>
        ),
    },
    { id: "lines", title: t.lines, width: 120, yields: 2, cell: ({ version }) => <Lines version={version} /> },
    { id: "pairs", title: t.pairs, width: 150, yields: 1, cell: ({ version }) => <Pairs version={version} /> },
    {
      id: "author",
      title: t.author,
      width: 160,
      yields: 3,
      cell: ({ author }) => <span className="block truncate">{authorWords(author, text.policy.key)}</span>,
    },
    { id: "saved", title: t.time, width: 110, cell: ({ savedAt }) => <Time at={savedAt} focusable={false} /> },
  ];
}

function PhoneRow({ version, inForce }: { version: PolicyVersion; inForce: string | undefined }) {
  return (
    <Link
      to="/policy/versions/$version"
      params={{ version: version.version }}
      className="flex h-full w-full min-w-0 flex-col justify-center"
    >
      <span className="flex items-center gap-2 text-14 font-medium">
        {text.policy.versionTitle(version.version)}
        <Standing version={version} inForce={inForce} />
      </span>
      <span className="flex items-center gap-2 text-12 text-ink-2">
        <Time at={version.savedAt} focusable={false} className="shrink-0" />
        <span className="min-w-0 truncate">{version.reason ? printable(version.reason, 300) : t.noReason}</span>
      </span>
    </Link>
  );
}
