import { type ErrorComponentProps, Link } from "@tanstack/react-router";
import { Compass } from "lucide-react";
import { text } from "@/text";
import { Empty, ErrorState, linkButton, Page } from "@/ui";

export function NotFound() {
  return (
    <Page title={text.common.notFoundTitle}>
      <Empty
        icon={Compass}
        title={text.common.notFoundTitle}
        action={
          <Link to="/" className={linkButton()}>
            {text.common.goOverview}
          </Link>
        }
      >
        {text.common.notFoundBody}
      </Empty>
    </Page>
  );
}

/** Shown when a page throws. After an update of the console, old chunks are gone, and only a reload helps. */
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
