/** The editor of the policy and the effect of the edit. CodeMirror belongs here, in a chunk of its own. */
import { ScrollText } from "lucide-react";
import { text } from "@/text";
import { Empty, Page } from "@/ui";

export function PolicyPage() {
  return (
    <Page title={text.policy.title}>
      <Empty icon={ScrollText} title={text.policy.emptyTitle}>
        {text.policy.emptyBody}
      </Empty>
    </Page>
  );
}
