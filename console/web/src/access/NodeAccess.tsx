import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ArrowRight, Info } from "lucide-react";
import { useMemo } from "react";
import { type AccessPrincipal, type Node, type User, useCan } from "@/api";
import { printable } from "@/text";
import { accessMap, accessView } from "@/text/access";
import { ColumnHead, Delayed, ErrorState, Skeleton } from "@/ui";
import { type AccessRow, linesOf, rowsOf, shortPorts } from "./model";
import { PrincipalName, RuleLines } from "./parts";
import { accessQuery } from "./query";

const t = accessMap;

/** What a node can reach and who can reach it, grouped by the other end. */
export function NodeAccess({ node }: { node: Node }) {
  if (node.expired) return <p className="text-13 text-ink-2">{t.node.expired}</p>;
  // The search parameters for the drawing of this node; phones show the table instead.
  const drawn = { view: "flow", node: node.givenName, by: "nodes" };
  return (
    <BothWays
      name={node.id}
      words={t.node}
      map={(side) => ({ ...drawn, q: `${side}:"${node.givenName}"` })}
      check={{ from: node.givenName }}
    />
  );
}

/**
 * Like NodeAccess, for all untagged nodes of a user. For a user without nodes, the access that a first node would have.
 */
export function UserAccess({ user }: { user: User }) {
  // The trailing @ keeps it from being mistaken for the name of a node.
  const asked = user.name.includes("@") ? user.name : `${user.name}@`;
  const { data } = useQuery({ ...accessQuery({ from: [asked] }), enabled: useCan()("policy:read") });
  const principal = data?.from[0];
  const listed = { view: "table", by: "users" };
  const name = printable(user.name);
  const note =
    principal &&
    (principal.nodes === 0 ? accessView.user.noDevices(name) : allExpired(principal) && accessView.user.expired(name));
  return (
    <div className="space-y-4">
      {note && (
        <p className="flex items-start gap-2.5 rounded-lg bg-sunken px-4 py-3 text-13 text-ink-2">
          <Info className="mt-0.5 size-4 shrink-0" aria-hidden />
          {note}
        </p>
      )}
      {/* The map shows existing nodes, so it does not contain a user without nodes. */}
      <BothWays
        name={asked}
        words={principal?.nodes === 0 ? accessView.user.first : t.user}
        map={principal?.nodes === 0 ? undefined : (side) => ({ ...listed, q: `${side}:"${user.name}"` })}
      />
    </div>
  );
}

const allExpired = ({ nodes, expired }: AccessPrincipal) => nodes === expired;

type Side = "from" | "to";

function BothWays({
  name,
  words,
  map,
  check,
}: {
  name: string;
  words: { nothing: string; nobody: string };
  /** Search parameters for the form that checks access from this principal. */
  check?: Record<string, string>;
  /** Search parameters for the map that show this principal on one side, if the map contains it. */
  map?(side: Side): Record<string, string>;
}) {
  if (!useCan()("policy:read")) return null;
  return (
    <div className="space-y-6">
      <OneWay name={name} side="from" none={words.nothing} map={map?.("from")} check={check} />
      <OneWay name={name} side="to" none={words.nobody} map={map?.("to")} />
    </div>
  );
}

function OneWay({
  name,
  side,
  none,
  map,
  check,
}: {
  name: string;
  side: Side;
  none: string;
  map?: Record<string, string>;
  check?: Record<string, string>;
}) {
  const { data, error, refetch } = useQuery(accessQuery({ [side]: [name] }));
  const rows = useMemo(() => (data ? rowsOf(data) : []), [data]);
  const title = side === "from" ? t.node.canReach : t.node.reachableBy;
  const other = side === "from" ? "to" : "from";
  return (
    <section className="min-w-0">
      <div className="flex items-center gap-3 pb-2">
        <h2 className="flex-1 text-13 font-semibold">{title}</h2>
        {check && <MapLink search={check}>{t.node.check}</MapLink>}
        {map && <MapLink search={map}>{t.node.map}</MapLink>}
      </div>
      {error && !data ? (
        <ErrorState title={t.failed} error={error} onRetry={() => void refetch()} />
      ) : !data ? (
        <Delayed>
          <Waiting />
        </Delayed>
      ) : rows.length === 0 ? (
        <p className="rounded-lg border border-line bg-surface px-4 py-3 text-13 text-ink-2">{none}</p>
      ) : (
        <Peers title={title} rows={rows} other={other} />
      )}
    </section>
  );
}

const MapLink = ({ search, children }: { search: Record<string, string>; children: string }) => (
  <Link
    to="/access"
    search={search as never}
    className="inline-flex min-h-6 items-center gap-1 text-12 text-accent-ink hover:underline"
  >
    {children} <ArrowRight className="size-3" aria-hidden />
  </Link>
);

const Waiting = () => (
  <div className="space-y-3 rounded-lg border border-line bg-surface p-4">
    <Skeleton className="w-3/4" />
    <Skeleton className="w-1/2" />
    <Skeleton className="w-2/3" />
  </div>
);

function Peers({ title, rows, other }: { title: string; rows: readonly AccessRow[]; other: "from" | "to" }) {
  return (
    <div className="overflow-hidden rounded-lg border border-line bg-surface">
      <table className="w-full table-fixed text-13">
        <caption className="sr-only">{title}</caption>
        <thead>
          <tr className="h-9 border-b border-line text-left text-12 text-ink-2">
            <ColumnHead className="pl-4">{other === "to" ? t.table.to : t.table.from}</ColumnHead>
            <ColumnHead className="w-[34%] px-2">{t.node.ports}</ColumnHead>
            <ColumnHead className="w-[22%] pr-4">{t.node.lines}</ColumnHead>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id} className="border-b border-hair last:border-0">
              <th scope="row" className="py-2 pl-4 text-left font-normal">
                <PrincipalName principal={row[other]} link />
                <span className="text-12 text-ink-3">{peerWords(row, row[other])}</span>
              </th>
              <td className="px-2 py-2 font-mono text-12 break-words">{shortPorts(row.cell.ports)}</td>
              <td className="py-2 pr-4">
                <RuleLines lines={linesOf(row.rules)} most={2} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The number of nodes on the other side, if it adds information to the name. */
function peerWords(row: AccessRow, peer: AccessPrincipal): string {
  if (peer.kind === "node") return "";
  if (peer.kind === "route" || peer.kind === "internet") return t.routers(peer.nodes);
  const nodes = row.cell.pairs < row.cell.of ? t.of(row.cell.pairs, row.cell.of) : t.nodes(peer.nodes - peer.expired);
  return row.cell.own ? `${nodes}, ${t.own}` : nodes;
}
