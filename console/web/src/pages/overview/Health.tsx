import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { serverQuery, useSession } from "@/api";
import { overviewWords } from "@/text/overview";
import { ErrorState, LoadingLines, Section } from "@/ui";
import { HealthList } from "./HealthList";
import { healthLines } from "./health";

const t = overviewWords.health;

/** Every part of the server: its state, since when, and what that means. */
export function Health() {
  const { data, error, refetch } = useQuery(serverQuery);
  const { coordinator, console: own } = useSession();
  const versions = { server: coordinator.productVersion, console: own.version };
  // biome-ignore lint/correctness/useExhaustiveDependencies: the versions come from the session
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
        <HealthList lines={lines} />
      ) : error ? (
        <ErrorState title={t.failed} error={error} onRetry={() => void refetch()} />
      ) : (
        <LoadingLines widths={["w-48", "w-56", "w-40", "w-52"]} className="space-y-5 p-4" />
      )}
    </Section>
  );
}
