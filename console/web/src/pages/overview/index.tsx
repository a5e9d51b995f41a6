/** What needs somebody now, six figures, health, and what happened last. */
import { LayoutDashboard } from "lucide-react";
import { text } from "@/text";
import { Empty, Page } from "@/ui";

export function OverviewPage() {
  return (
    <Page title={text.overview.title}>
      <Empty icon={LayoutDashboard} title={text.overview.emptyTitle}>
        {text.overview.emptyBody}
      </Empty>
    </Page>
  );
}
