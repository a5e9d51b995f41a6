import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { serverQuery, useSession } from "@/api";
import { text } from "@/text";
import { overviewWords } from "@/text/overview";
import { Delayed, ErrorState, Mark, Section, Skeleton, Time } from "@/ui";
import { type HealthLine, healthLines } from "./health";

const t = overviewWords.health;

/** Every part of the service: how it is, since when, and what that means. */
export function Health() {
  const { data, error, refetch } = useQuery(serverQuery);
  const { coordinator, console: own } = useSession();
  const versions = { server: coordinator.productVersion, console: own.version };
  // biome-ignore lint/correctness/useExhaustiveDependencies: the versions are those of the session
  const lines = useMemo(() => data && healthLines(data, versions), [data, versions.server, versions.console]);
  return (
    <Section
      title={t.title}
      action={
        <Link
          to="/settings/server"
          className="-mr-2 inline-flex h-8 items-center rounded-md px-2 font-medium text-accent-ink hover:bg-accent-soft"
        >
          {t.details}
        </Link>
      }
    >
      {lines ? (
        <ul className="py-1">
          {lines.map((line) => (
            <Line key={line.id} line={line} />
          ))}
        </ul>
      ) : error ? (
        <ErrorState title={t.failed} error={error} onRetry={() => void refetch()} />
      ) : (
        <Delayed>
          <div role="status" aria-label={text.common.loading} className="space-y-5 p-4">
            {["w-48", "w-56", "w-40", "w-52"].map((width) => (
              <Skeleton key={width} className={width} />
            ))}
          </div>
        </Delayed>
      )}
    </Section>
  );
}

const marks = { pass: "on", warn: "warn", fail: "bad" } as const;

function Line({ line }: { line: HealthLine }) {
  return (
    <li className="grid grid-cols-[8px_minmax(0,1fr)] gap-x-3 px-4 py-2">
      <span className="flex h-5 items-center">
        <Mark state={marks[line.status]} label={t.states[line.status]} />
      </span>
      <div>
        <div className="flex items-baseline justify-between gap-3">
          <span className="font-medium">{line.name}</span>
          {line.since && <Time at={line.since} className="text-12 text-ink-3" format={t.since} />}
        </div>
        <p className="text-12 break-words text-ink-2">{line.words}</p>
      </div>
    </li>
  );
}
