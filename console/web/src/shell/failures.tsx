import { type ErrorComponentProps, Link } from "@tanstack/react-router";
import { text } from "@/text";
import { ErrorState, LoadingLines, linkButton, Page } from "@/ui";

export function NotFound() {
  return (
    <Page title={text.common.notFoundTitle}>
      <div className="space-y-4">
        <p className="text-ink-2">{text.common.notFoundBody}</p>
        <Link to="/" className={linkButton()}>
          {text.common.goOverview}
        </Link>
      </div>
    </Page>
  );
}

/** Shown while the code of a page loads. */
export const PageWaiting = () => (
  <LoadingLines widths={["w-40", "w-96 max-w-full", "w-80 max-w-full", "w-64"]} className="space-y-5 p-6 max-md:p-4" />
);

/** Shown when a page throws. After an update of the console, old chunks no longer exist, and only a reload helps. */
export function PageFailed({ error }: ErrorComponentProps) {
  const stale = error instanceof Error && /dynamically imported module|importing a module/i.test(error.message);
  return (
    <ErrorState
      title={text.common.pageFailed}
      error={stale ? new Error(text.common.chunkFailed) : error}
      onRetry={() => location.reload()}
    />
  );
}
