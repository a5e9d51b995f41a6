import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useId, useState } from "react";
import { api, keys, newRequestName, type Route, useCan } from "@/api";
import { NodeMark } from "@/nodes";
import { byNetwork, isWaiting, type RouteRow, turnCall } from "@/routes";
import { printable, text } from "@/text";
import { words as t } from "@/text/routes";
import { ApiSteps, Button, Input, Time, useStatus, useWrites } from "@/ui";
import { AutoApproved, labelOf, RouteSwitch, StateBadge } from "./columns";
import { type AutoApprovers, approverOf } from "./facts";

/** Everything about one network or exit node: its routers, what the policy says, and who served it. */
export function RoutePanel({
  row,
  rows,
  by,
  users,
}: {
  row: RouteRow;
  rows: readonly RouteRow[];
  by: AutoApprovers;
  /** How many nodes may use it as their exit node. */
  users: number | undefined;
}) {
  const routers = row.route.exit ? [row] : rows.filter((other) => other.prefix === row.prefix).sort(byNetwork);
  const approver = approverOf(row, by);
  const recorded = useRecorded(row.prefix);
  return (
    <div className="space-y-6">
      <Part title={t.panel.routers}>
        <ul className="divide-y divide-hair rounded-lg border border-line">
          {routers.map((router) => (
            <Router
              key={router.id}
              row={router}
              recorded={recorded?.find((route) => route.node.id === router.node.id)}
              choice={routers.length > 1}
            />
          ))}
        </ul>
        {routers.length > 1 && <p className="text-12 text-ink-2">{t.panel.preferenceHint}</p>}
        <div className="flex flex-wrap">
          <Calls routers={routers} recorded={recorded ?? []} />
        </div>
      </Part>
      {row.overlaps.length > 0 && (
        <Part title={t.panel.overlaps}>
          <ul>
            {row.overlaps.map((prefix) => (
              <li key={prefix}>
                <Link to="/routes" search={{ q: prefix }} className="font-mono text-12 text-accent-ink hover:underline">
                  {prefix}
                </Link>
              </li>
            ))}
          </ul>
        </Part>
      )}
      {(approver || users !== undefined) && (
        <Part title={t.panel.policy}>
          {users !== undefined && <p>{t.panel.users(users)}</p>}
          {approver && <AutoApproved row={row} approver={approver} />}
        </Part>
      )}
      <History row={row} />
    </div>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="space-y-2">
      <h3 className="font-semibold">{title}</h3>
      {children}
    </section>
  );
}

/** Routes as the server stores them, for their IDs and preferences. */
function useRecorded(prefix: string): Route[] | undefined {
  return useQuery({
    queryKey: [...keys.routes, prefix],
    queryFn: async ({ signal }) => (await api.get("/api/v1/routes", { query: { prefix }, signal })).routes,
    enabled: useCan()("routes:read"),
  }).data;
}

/** The API calls behind the switches, preferences and buttons of the routers. */
function Calls({ routers, recorded }: { routers: readonly RouteRow[]; recorded: readonly Route[] }) {
  if (!useWrites("routes:write").offered) return null;
  const steps = routers.flatMap((row) => {
    const name = printable(row.node.givenName);
    const on = isWaiting(row);
    const found = recorded.find((route) => route.node.id === row.node.id);
    const path = `/api/v1/routes/${found?.id}`;
    return [
      {
        title: on ? t.approve(labelOf(row), name) : t.panel.disable(labelOf(row), name),
        ...turnCall(row.node, row.route.prefixes, on),
      },
      ...(found && routers.length > 1
        ? [
            {
              title: t.panel.preference(name),
              method: "patch" as const,
              path,
              body: { preference: found.preference },
            },
          ]
        : []),
      ...(found && !found.advertised ? [{ title: t.panel.forgetThrough(name), method: "delete" as const, path }] : []),
    ];
  });
  return <ApiSteps steps={steps} />;
}

function Router({ row, recorded, choice }: { row: RouteRow; recorded: Route | undefined; choice: boolean }) {
  const { offered, why } = useWrites("routes:write");
  const status = useStatus();
  const forget = async () => {
    if (!recorded) return;
    try {
      await api.call("delete", "/api/v1/routes/{routeId}", {
        params: { routeId: recorded.id },
        once: newRequestName(),
      });
      status.done(t.panel.forgotten(row.prefix));
    } catch (error) {
      status.failed(t.panel.forgetFailed(row.prefix), error);
    }
  };
  return (
    <li className="space-y-2 px-3 py-2.5">
      <div className="flex items-center gap-2.5">
        <NodeMark node={row.node} />
        <Link to="/nodes/$id" params={{ id: row.node.id }} className="min-w-0 flex-1 truncate hover:underline">
          {printable(row.node.givenName)}
        </Link>
        <StateBadge state={row.route.state} />
        <RouteSwitch row={row} />
      </div>
      {choice && recorded && <Preference key={recorded.preference} row={row} recorded={recorded} />}
      {offered && recorded && !recorded.advertised && (
        <Button why={why} onClick={() => void forget()}>
          {t.panel.forget}
        </Button>
      )}
    </li>
  );
}

function Preference({ row, recorded }: { row: RouteRow; recorded: Route }) {
  const { offered, why } = useWrites("routes:write");
  const status = useStatus();
  const id = useId();
  const [typed, setTyped] = useState(String(recorded.preference));
  const name = printable(row.node.givenName);
  const value = /^-?\d{1,4}$/.test(typed.trim()) ? Number(typed) : Number.NaN;
  const good = value >= -1000 && value <= 1000;
  if (!offered)
    return (
      <p className="text-12 text-ink-2">
        {t.panel.preferenceTitle}: {recorded.preference}
      </p>
    );
  const save = async () => {
    if (!good || why) return;
    try {
      await api.call("patch", "/api/v1/routes/{routeId}", {
        params: { routeId: recorded.id },
        body: { preference: value },
        once: newRequestName(),
      });
      status.done(t.panel.saved(name));
    } catch (error) {
      status.failed(t.panel.saveFailed(name), error);
    }
  };
  return (
    <form
      className="flex flex-wrap items-center gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <label htmlFor={id} className="text-12 text-ink-2">
        {t.panel.preferenceTitle}
      </label>
      <Input
        id={id}
        inputMode="numeric"
        className="w-20!"
        value={typed}
        aria-label={t.panel.preference(name)}
        aria-invalid={!good || undefined}
        onChange={(event) => setTyped(event.target.value)}
      />
      {value !== recorded.preference && (
        <Button type="submit" disabled={!good} why={why}>
          {t.panel.save}
        </Button>
      )}
      {!good && (
        <span role="alert" className="text-12 text-bad">
          {t.panel.preferenceBad}
        </span>
      )}
    </form>
  );
}

function History({ row }: { row: RouteRow }) {
  const can = useCan();
  const { data } = useQuery({
    queryKey: [...keys.routes, "history", row.prefix],
    queryFn: ({ signal }) => api.get("/api/v1/routes/history", { query: { prefix: row.prefix, limit: 50 }, signal }),
    enabled: can("history:read") && !row.route.exit,
  });
  if (!can("history:read")) return null;
  return (
    <Part title={t.panel.history}>
      {row.route.exit ? (
        <p className="text-ink-2">{t.panel.exitHistory}</p>
      ) : data?.terms.length === 0 ? (
        <p className="text-ink-2">{t.panel.noHistory}</p>
      ) : (
        <ol className="space-y-1.5">
          {data?.terms.map((term) => (
            <li key={`${term.nodeId} ${term.from}`} className="flex items-baseline justify-between gap-4">
              <span className="truncate">{printable(term.nodeName)}</span>
              <span className="shrink-0 text-12 text-ink-2">
                <Time at={term.from} />
                {" – "}
                {term.until ? <Time at={term.until} /> : text.common.now}
              </span>
            </li>
          ))}
        </ol>
      )}
    </Part>
  );
}
