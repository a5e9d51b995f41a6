/** Changes and presence on one axis of time. */
import { Activity } from "lucide-react";
import { text } from "@/text";
import { Empty, Page } from "@/ui";

export function TimelinePage() {
  return (
    <Page title={text.timeline.title}>
      <Empty icon={Activity} title={text.timeline.emptyTitle}>
        {text.timeline.emptyBody}
      </Empty>
    </Page>
  );
}
