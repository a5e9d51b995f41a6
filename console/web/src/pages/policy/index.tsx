/** The policy editor and the effect of an edit. CodeMirror is part of the workbench, in a separate chunk. */
import { lazy, Suspense } from "react";
import { usePolicy } from "@/api";
import { text } from "@/text";
import { Delayed, ErrorState, PageHead, Skeleton, usePageTitle } from "@/ui";

const bench = import("./Workbench");
const Workbench = lazy(() => bench);

export function PolicyPage() {
  usePageTitle(text.policy.title);
  const { data, error, refetch } = usePolicy();
  if (!data && error) return <ErrorState title={text.policy.failed} error={error} onRetry={() => void refetch()} />;
  if (!data) return <Waiting />;
  return (
    <Suspense fallback={<Waiting />}>
      <Workbench policy={data.policy} etag={data.etag} />
    </Suspense>
  );
}

/** A placeholder for the editor: lines of text, and the panel beside them. */
function Waiting() {
  return (
    <div className="flex h-full flex-col">
      <PageHead title={text.policy.title} below={<div className="h-3" />} />
      <Delayed>
        <div className="flex min-h-0 flex-1">
          <div className="flex-1 space-y-2.5 bg-surface px-16 py-4">
            {[40, 8, 22, 52, 60, 10, 24, 38, 38, 8, 20, 58, 66].map((width, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the list never changes
              <span key={index} className="skeleton block h-2.5" style={{ width: `${width}%` }} />
            ))}
          </div>
          <div className="w-[440px] space-y-3 border-l border-line p-4 max-[1099px]:hidden">
            <Skeleton className="h-5! w-40" />
            <Skeleton className="h-16!" />
            <Skeleton className="h-20!" />
          </div>
        </div>
      </Delayed>
    </div>
  );
}
