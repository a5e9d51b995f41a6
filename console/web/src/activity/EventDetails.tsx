import { Link } from "@tanstack/react-router";
import { clsx } from "clsx";
import type { ReactNode } from "react";
import { type AuditFilter, type Change, useCan } from "@/api";
import { printable, text } from "@/text";
import { absolute, Button, ColumnHead, CopyButton, linkButton, Time, usePreferences } from "@/ui";
import { type Difference, differences } from "./diff";
import { useKeyComments } from "./keyComments";
import { actorWords, eventWords } from "./words";

const t = text.activity.details;

/** Everything known about a change: who made it, from where, and the values before and after. */
export function EventDetails({ entry, onFilter }: { entry: Change; onFilter?(filter: AuditFilter): void }) {
  const { timeZone } = usePreferences();
  const { actor } = entry;
  const comment = useKeyComments()(entry);
  const differing = differences(entry, timeZone);
  return (
    <div className="space-y-5">
      <div className="space-y-1">
        <h3 className="text-14 font-semibold break-words">{eventWords(entry).title}</h3>
        <p className="text-12 text-ink-2">
          {absolute(entry.at, timeZone)} · <Time at={entry.at} />
        </p>
      </div>
      <dl className="grid grid-cols-[96px_minmax(0,1fr)] gap-y-2 text-13">
        <Fact label={t.who}>{actorWords(entry)}</Fact>
        {comment && <Fact label={t.comment}>{printable(comment)}</Fact>}
        {actor.address && (
          <Fact label={t.address} mono>
            {printable(actor.address)}
          </Fact>
        )}
        {actor.reason && <Fact label={t.reason}>{printable(actor.reason)}</Fact>}
        {actor.requestId && (
          <Fact label={t.reference} mono>
            <span className="flex items-center gap-1">
              {printable(actor.requestId)}
              <CopyButton value={actor.requestId} what={t.reference} className="-my-1" />
            </span>
          </Fact>
        )}
        <Fact label={t.id} mono>
          {entry.id}
        </Fact>
      </dl>
      <Differences list={differing} entry={entry} />
      <div className="flex flex-wrap gap-2">
        <ObjectLink entry={entry} />
        {onFilter && (
          <>
            <Button onClick={() => onFilter({ kind: entry.kind, object: entry.object })}>{t.onlyObject}</Button>
            <Button onClick={() => onFilter({ actor: actorFilter(entry) })}>{t.onlyActor}</Button>
          </>
        )}
      </div>
    </div>
  );
}

/** The actor in the syntax of the server's filter. */
export const actorFilter = ({ actor }: Change) => (actor.id ? `${actor.kind}:${actor.id}` : actor.kind);

function Fact({ label, children, mono }: { label: string; children: ReactNode; mono?: boolean }) {
  return (
    <>
      <dt className="text-ink-2">{label}</dt>
      <dd className={mono ? "min-w-0 font-mono text-12 leading-5 break-all" : "min-w-0 break-words"}>{children}</dd>
    </>
  );
}

function Differences({ list, entry }: { list: readonly Difference[]; entry: Change }) {
  const title = !entry.before ? t.created : !entry.after ? t.facts : t.changes;
  if (list.length === 0) return <p className="text-13 text-ink-2">{t.noChange}</p>;
  const both = entry.before && entry.after;
  return (
    <table className="w-full table-fixed text-12">
      <caption className="pb-1 text-left text-13 font-semibold">{title}</caption>
      {both ? (
        <thead>
          <tr className="border-b border-line text-left text-ink-2">
            <ColumnHead className="h-7 w-28">
              <span className="sr-only">{t.object}</span>
            </ColumnHead>
            <ColumnHead className="pr-3">{t.before}</ColumnHead>
            <ColumnHead>{t.after}</ColumnHead>
          </tr>
        </thead>
      ) : null}
      <tbody>
        {list.map(({ field, before, after }) => (
          <tr key={field} className="border-b border-hair align-top">
            <th scope="row" className="w-28 py-1.5 pr-3 text-left font-normal text-ink-2">
              {field}
            </th>
            {both ? (
              <>
                <Value lines={before} other={after} gone />
                <Value lines={after} other={before} />
              </>
            ) : (
              <Value lines={[...before, ...after]} />
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Marks what differs from the other side, and not only by colour: removed lines have a minus, added ones a plus. */
function Value({ lines, other, gone }: { lines: readonly string[]; other?: readonly string[]; gone?: boolean }) {
  return (
    <td className="py-1.5 pr-3 font-mono break-words">
      {lines.map((line) => {
        const differs = other && !other.includes(line);
        return (
          <span key={line} className="block py-px">
            <span
              className={clsx(
                "rounded box-decoration-clone py-0.5",
                differs && ["px-1", gone ? "bg-bad-soft text-bad" : "bg-ok-soft text-ok"],
              )}
            >
              {differs && <span aria-hidden>{gone ? "−\u00a0" : "+\u00a0"}</span>}
              {line}
            </span>
          </span>
        );
      })}
      {lines.length === 0 && <span className="text-ink-3">{text.activity.nothing}</span>}
    </td>
  );
}

/** A link to the changed object, if it still exists and may be viewed. */
function ObjectLink({ entry: { kind, object, after } }: { entry: Change }) {
  const can = useCan();
  if (!after) return null;
  if (kind === "node" && can("nodes:read"))
    return (
      <Link to="/nodes/$id" params={{ id: object }} className={linkButton()}>
        {t.openNode}
      </Link>
    );
  if (kind === "user" && can("users:read"))
    return (
      <Link to="/users/$id" params={{ id: object }} className={linkButton()}>
        {t.openUser}
      </Link>
    );
  if (kind === "policy" && can("policy:read"))
    return (
      <Link to="/policy/versions/$version" params={{ version: object }} className={linkButton()}>
        {t.openPolicy}
      </Link>
    );
  return null;
}
