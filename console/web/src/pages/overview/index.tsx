/**
 * What needs attention now, six figures, the next steps, health, and recent changes. An empty network shows the first
 * steps.
 */
import { Link } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useState } from "react";
import { ActivityList } from "@/activity";
import { useCan, useNodes, useSession } from "@/api";
import { text } from "@/text";
import { overviewWords } from "@/text/overview";
import { Page, Section, Skeleton, usePreferences } from "@/ui";
import { Attention } from "./Attention";
import { Figures } from "./Figures";
import { Health } from "./Health";

const t = overviewWords;
const FirstRun = lazy(async () => ({ default: (await import("./FirstRun")).FirstRun }));
const Steps = lazy(async () => ({ default: (await import("./Steps")).Steps }));

export function OverviewPage() {
  const { data } = useNodes();
  const [first, setFirst] = useState(false);
  const empty = data?.complete === true && data.items.length === 0;
  useEffect(() => {
    // Stay on the first-run page when the first node joins, to say so.
    if (empty) setFirst(true);
  }, [empty]);
  return (
    <Page title={text.overview.title}>
      {first || empty ? (
        <Suspense fallback={<Skeleton className="mx-auto mt-8 max-w-[680px]" />}>
          <FirstRun onLeave={() => setFirst(false)} />
        </Suspense>
      ) : (
        <Dashboard />
      )}
    </Page>
  );
}

function Dashboard() {
  const can = useCan();
  const { key } = useSession();
  const { nextSteps } = usePreferences();
  return (
    <div className="space-y-5">
      <Attention />
      <Figures />
      <div className="grid grid-cols-[minmax(0,7fr)_minmax(0,4fr)] items-start gap-5 max-lg:grid-cols-1">
        {can("history:read") && (
          <Section
            title={t.activity.title}
            className="max-lg:order-2"
            action={
              <Link
                to="/timeline"
                className="-mr-2 inline-flex h-8 items-center rounded-md px-2 font-medium text-accent-ink hover:bg-accent-soft"
              >
                {t.activity.all}
              </Link>
            }
          >
            <div className="px-4 py-1">
              <ActivityList limit={20} />
            </div>
          </Section>
        )}
        <div className="min-w-0 space-y-5">
          {nextSteps && key.role !== "read" && (
            <Suspense>
              <Steps />
            </Suspense>
          )}
          {can("service:read") && <Health />}
        </div>
      </div>
    </div>
  );
}
