/** Devices and SSH sessions that wait for an answer. */
import { Inbox } from "lucide-react";
import { text } from "@/text";
import { Empty, Page } from "@/ui";

export function RequestsPage() {
  return (
    <Page title={text.requests.title}>
      <Empty icon={Inbox} title={text.requests.emptyTitle}>
        {text.requests.emptyBody}
      </Empty>
    </Page>
  );
}
