import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { accessQuery } from "@/access/query";
import { useCan } from "@/api";
import { words as t } from "@/text/routes";
import { ApiScript, Confirm } from "@/ui";
import { type Asked, callsOf, dangersOf, lossOf, type RouteRow } from "./facts";
import { internet, type Users, usersOf } from "./losers";
import { labelOf, namesOf, routerOf, useTurn } from "./turn";

/** Asks before routes are approved or disabled, with the consequences for each. */
export default function Question({ asked, onClose }: { asked: Asked; onClose(): void }) {
  const { on, rows } = asked;
  const turn = useTurn();
  const [busy, setBusy] = useState(false);
  const only = rows.length === 1 ? rows[0] : undefined;
  const submit = async () => {
    setBusy(true);
    // A single switch shows its new state immediately; several do so when the calls are done.
    if (only) onClose();
    await turn(asked);
    onClose();
  };
  return (
    <Confirm
      danger={!on}
      busy={busy}
      title={titleOf(rows, on)}
      submit={submitOf(rows, on)}
      word={rows.length >= 5 ? String(rows.length) : undefined}
      call={<ApiScript calls={callsOf(rows, on)} />}
      onClose={onClose}
      onSubmit={() => void submit()}
    >
      {on ? <Approval asked={asked} /> : <Disabling asked={asked} busy={busy} />}
    </Confirm>
  );
}

function titleOf(rows: readonly RouteRow[], on: boolean): string {
  const [row] = rows;
  if (!row || rows.length > 1) return on ? t.all.title(rows.length) : t.disable.titleMany(rows.length);
  if (on) return t.sure.title(row.prefix, routerOf(row));
  return row.route.exit ? t.disable.titleExit(routerOf(row)) : t.disable.title(row.prefix);
}

function submitOf(rows: readonly RouteRow[], on: boolean): string {
  if (rows.length > 1) return on ? t.all.submit(rows.length) : t.disable.submitMany(rows.length);
  return on ? t.sure.submit : rows[0]?.route.exit ? t.disable.submitExit : t.disable.submit;
}

function Approval({ asked: { rows, all, own } }: { asked: Asked }) {
  const [only] = rows;
  if (rows.length === 1 && only) {
    const dangers = dangersOf(only, all, own);
    return (
      <>
        {dangers.inUse.length > 0 && <p>{t.sure.overlaps(dangers.inUse)}</p>}
        {dangers.own && <p>{t.sure.own(own)}</p>}
      </>
    );
  }
  return (
    <>
      <p>{t.all.body}</p>
      <List
        rows={rows}
        note={(row) => {
          const dangers = dangersOf(row, all, own, rows);
          return (
            <>
              {dangers.inUse.length > 0 && <p className="text-warn">{t.all.overlaps(dangers.inUse)}</p>}
              {dangers.own && <p className="text-warn">{t.all.own(own)}</p>}
            </>
          );
        }}
      />
    </>
  );
}

function Disabling({ asked: { rows, all }, busy }: { asked: Asked; busy: boolean }) {
  const users = useUsers(
    rows.filter((row) => lossOf(row, all, rows)?.cuts),
    !busy,
  );
  const [only] = rows;
  if (rows.length === 1 && only)
    return (
      <p>
        {lossWords(only, rows, all, users(only))} {t.disable.policy}
      </p>
    );
  return (
    <>
      <List rows={rows} note={(row) => <p className="text-ink-2">{lossWords(row, rows, all, users(row))}</p>} />
      <p>{t.disable.policyMany}</p>
    </>
  );
}

const List = ({ rows, note }: { rows: readonly RouteRow[]; note(row: RouteRow): ReactNode }) => (
  <ul
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard
    tabIndex={0}
    className="max-h-72 space-y-1.5 overflow-y-auto rounded-md bg-chip px-3 py-2 text-12 text-ink"
  >
    {rows.map((row) => (
      <li key={row.id}>
        <div className="flex justify-between gap-4">
          <span className={row.route.exit ? undefined : "font-mono"}>{labelOf(row)}</span>
          <span className="truncate">{routerOf(row)}</span>
        </div>
        {note(row)}
      </li>
    ))}
  </ul>
);

/** The maximum that the server accepts in one request; users of further paths are not listed. */
const mostAsked = 100;
const targetOf = (row: RouteRow) => (row.route.exit ? internet : row.prefix);

/**
 * Who may use the paths that are lost; undefined while unknown, or without permission to see it. It is not requested
 * again once the paths are being disabled.
 */
function useUsers(lost: readonly RouteRow[], asks: boolean): (row: RouteRow) => Users | undefined {
  const to = [...new Set(lost.map(targetOf))].slice(0, mostAsked);
  const { data } = useQuery({
    ...accessQuery({ to, by: "nodes" }),
    enabled: useCan()("policy:read") && to.length > 0 && asks,
  });
  return (row) => (data && to.includes(targetOf(row)) ? usersOf(data, targetOf(row), row.node) : undefined);
}

const mostNames = 5;

/** The consequences for the users of a route. */
export function lossWords(
  row: RouteRow,
  rows: readonly RouteRow[],
  all: readonly RouteRow[],
  users: Users | undefined,
): string {
  const words = t.disable;
  const loss = lossOf(row, all, rows);
  if (!loss) return words.unused;
  if (!loss.cuts) return words.takesOver(namesOf(loss.next));
  const { exit } = row.route;
  const who = usersWords(users, exit);
  const nobody = users?.complete === true && users.names.length === 0;
  if (exit) {
    const others = namesOf(loss.next);
    return nobody ? who : `${who} ${others.length > 0 ? words.otherExits(shortened(others)) : words.noExit}`;
  }
  const alone = words.alone(row.prefix);
  return loss.wider ? `${alone} ${words.wider(loss.wider.prefix, routerOf(loss.wider))}` : `${alone} ${who}`;
}

function usersWords(users: Users | undefined, exit: boolean): string {
  const words = t.disable;
  const count = users?.names.length ?? 0;
  if (!users || (count === 0 && !users.complete)) return exit ? words.allExit : words.all;
  if (count === 0) return exit ? words.nobodyExit : words.nobody;
  const names = shortened(users.names);
  if (users.complete) return exit ? words.someExit(count, names) : words.some(count, names);
  return exit ? words.atLeastExit(count, names) : words.atLeast(count, names);
}

const shortened = (names: readonly string[]) =>
  names.length > mostNames + 1
    ? t.disable.more(names.slice(0, mostNames).join(", "), names.length - mostNames)
    : names.join(", ");
