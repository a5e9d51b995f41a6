/** Who reaches what: ask, matrix and flow. */
import { Network } from "lucide-react";
import { text } from "@/text";
import { Empty, Page } from "@/ui";

export function AccessPage() {
  return (
    <Page title={text.access.title}>
      <Empty icon={Network} title={text.access.emptyTitle}>
        {text.access.emptyBody}
      </Empty>
    </Page>
  );
}
