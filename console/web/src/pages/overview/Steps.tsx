import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { clsx } from "clsx";
import { Circle, CircleCheck } from "lucide-react";
import { useMemo, useRef } from "react";
import { apiKeysQuery, useAllNodes, useCan, usePolicy, useSession } from "@/api";
import { type GuideName, guideTo } from "@/shell/documentation";
import { overviewWords } from "@/text/overview";
import { Button, Checkbox, Section, setPreference, useNow, usePreferences, useStatus } from "@/ui";
import { type Step, type StepName, stepsOf } from "./steps";

const t = overviewWords.steps;

/** Where a step is taken: on a page of the console, or by hand as a guide describes. */
const places: Record<StepName, { to: string; search?: Record<string, string> } | { guide: GuideName }> = {
  https: { guide: "https" },
  policy: { to: "/policy" },
  apiKey: { to: "/settings/api-keys", search: { create: "1" } },
  backups: { guide: "backups" },
  tags: { to: "/nodes" },
  router: { to: "/routes" },
};

/** What to set up after the first device. It is hidden when everything is done, but not while somebody looks at it. */
export function Steps() {
  const steps = useSteps();
  const status = useStatus();
  const done = steps.filter((step) => step.done).length;
  const seen = useRef(false);
  if (done < steps.length) seen.current = true;
  if (!seen.current || steps.length === 0) return null;
  const hide = () => {
    setPreference("nextSteps", false);
    // The button is gone, so move the focus to the content of the page.
    document.getElementById("main")?.focus({ preventScroll: true });
    status.done(t.hidden, () => setPreference("nextSteps", true));
  };
  return (
    <Section
      title={t.title}
      note={t.progress(done, steps.length)}
      action={
        <Button look="ghost" className="-mr-3" onClick={hide}>
          {t.hide}
        </Button>
      }
    >
      {done === steps.length && <p className="px-4 pt-3 text-ink-2">{t.allDone}</p>}
      <ul className="py-1">
        {steps.map((step) => (
          <Line key={step.name} step={step} />
        ))}
      </ul>
    </Section>
  );
}

function Line({ step: { name, done } }: { step: Step }) {
  const { title, why, act } = t.each[name];
  const place = places[name];
  const look =
    "-my-1.5 -mr-2 inline-flex h-8 shrink-0 items-center rounded-md px-2 text-accent-ink hover:bg-accent-soft";
  const label = `${act}: ${title}`;
  return (
    <li className="px-4 py-2">
      <div className={clsx("flex items-center justify-between gap-3", !done && "font-medium")}>
        {name === "backups" ? (
          <Checkbox label={title} checked={done} onChange={(on) => setPreference("backups", on)} />
        ) : (
          <span className="inline-flex items-center gap-2">
            {done ? (
              <CircleCheck className="size-4 shrink-0 text-ok" role="img" aria-label={t.done} />
            ) : (
              <Circle className="size-4 shrink-0 text-ink-3" role="img" aria-label={t.notDone} />
            )}
            {title}
          </span>
        )}
        {done ? null : "guide" in place ? (
          <a href={guideTo(place.guide)} target="_blank" rel="noreferrer" aria-label={label} className={look}>
            {act}
          </a>
        ) : (
          <Link to={place.to} search={(place.search ?? {}) as never} aria-label={label} className={look}>
            {act}
          </Link>
        )}
      </div>
      {!done && <p className="pl-6 text-12 text-ink-2">{why}</p>}
    </li>
  );
}

/** The steps, computed from data that the overview loads anyway. */
function useSteps(): Step[] {
  const may = useCan();
  const now = useNow();
  const { backups } = usePreferences();
  const { coordinator } = useSession();
  const { data: nodes } = useAllNodes();
  const { data: policy } = usePolicy();
  const { data: apiKeys } = useQuery({ ...apiKeysQuery, enabled: may("apikeys:read") });
  return useMemo(
    () =>
      stepsOf({
        now,
        server: coordinator.url,
        secure: window.isSecureContext,
        backups,
        nodes: nodes?.items,
        policy: policy?.policy,
        apiKeys: apiKeys?.items,
        may,
      }),
    [now, coordinator, backups, nodes, policy, apiKeys, may],
  );
}
