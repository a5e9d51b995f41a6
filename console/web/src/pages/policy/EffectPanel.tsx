import { clsx } from "clsx";
import { useId, useState } from "react";
import { type PolicyTestFailure, useNodes, useUsers } from "@/api";
import { printable } from "@/text";
import { words } from "@/text/policy";
import { Button, Delayed, ErrorState, Select, Skeleton } from "@/ui";
import type { TestLine } from "./document";
import { Effect, Notes } from "./Effect";
import type { EffectActions } from "./EffectCards";
import { changesNothing } from "./effectWords";
import { personOf } from "./names";
import { Tests } from "./Tests";
import type { Verdict } from "./useVerdict";

const place = "fairlead.policy-viewer";

/** The current user, as selected in this browser: the server does not know who owns a key. */
export function useViewer(): [string, (viewer: string) => void] {
  const [viewer, setViewer] = useState(() => {
    try {
      return localStorage.getItem(place) ?? "";
    } catch {
      return "";
    }
  });
  return [
    viewer,
    (chosen) => {
      setViewer(chosen);
      try {
        localStorage.setItem(place, chosen);
      } catch {
        // Without storage it lasts as long as the page.
      }
    },
  ];
}

/** What the text would change, and whether its tests pass. */
export function EffectPanel({
  verdict,
  dirty,
  tests,
  actions,
  viewer,
  onViewer,
}: {
  verdict: Verdict;
  dirty: boolean;
  tests: readonly TestLine[];
  actions: EffectActions;
  viewer: string;
  onViewer(viewer: string): void;
}) {
  const t = words.effect;
  const { data: nodes } = useNodes();
  const { effect, settled } = verdict;
  const broken = verdict.problems.length > 0;
  const failures: readonly PolicyTestFailure[] = effect?.tests ?? [];
  // Results that prevent saving come first.
  const results = <Tests tests={tests} failures={failures} goTo={actions.goTo} />;
  return (
    <div className="space-y-3">
      <div className="flex min-h-6 flex-wrap items-baseline gap-x-2">
        <h2 className="text-14 font-semibold">{dirty ? t.title : t.titleNow}</h2>
        {nodes && <span className="text-12 text-ink-3">{t.scope(nodes.items.length)}</span>}
      </div>
      {broken && <p className="text-13 text-ink-2">{t.waits}</p>}
      {!broken && verdict.error !== null && <ErrorState title={t.failed} error={verdict.error} onRetry={verdict.ask} />}
      {!broken && verdict.onRequest && (
        <div className="space-y-2 text-13 text-ink-2">
          <p>{t.askWhy(nodes?.items.length ?? 0)}</p>
          <Button onClick={verdict.ask}>{t.ask}</Button>
        </div>
      )}
      {!broken && !effect && !settled && !verdict.onRequest && <Waiting />}
      {!broken && effect && (
        <div
          aria-busy={!settled}
          className={clsx("space-y-3 transition-opacity duration-100", !settled && "opacity-60")}
        >
          {failures.length > 0 && results}
          {dirty || !changesNothing(effect) ? (
            <Effect effect={effect} actions={actions} />
          ) : (
            <>
              <p className="text-13 text-ink-2">{t.hint}</p>
              <Notes notes={effect.notes} />
            </>
          )}
          {failures.length === 0 && results}
          <Viewer viewer={viewer} onViewer={onViewer} />
        </div>
      )}
    </div>
  );
}

function Waiting() {
  return (
    <Delayed>
      <div className="grid grid-cols-3 gap-2">
        <Skeleton className="h-16!" />
        <Skeleton className="h-16!" />
        <Skeleton className="h-16!" />
      </div>
      <Skeleton className="h-20!" />
    </Delayed>
  );
}

function Viewer({ viewer, onViewer }: { viewer: string; onViewer(viewer: string): void }) {
  const t = words.effect;
  const { data: users } = useUsers();
  const id = useId();
  if (!users || users.items.length === 0) return null;
  return (
    <div className="flex flex-wrap items-center gap-x-2 gap-y-1 px-1 pt-1 text-12 text-ink-2">
      <label htmlFor={id}>{t.viewer}</label>
      <Select id={id} value={viewer} onChange={(event) => onViewer(event.target.value)} className="max-w-48">
        <option value="">{t.viewerNobody}</option>
        {users.items.map((user) => (
          <option key={user.id} value={personOf(user.name)}>
            {printable(user.name)}
          </option>
        ))}
      </Select>
      <span>{t.viewerHint}</span>
    </div>
  );
}
