/** Pre-auth keys, with which nodes join without anybody signing in. */
import { KeyRound } from "lucide-react";
import { text } from "@/text";
import { Empty, Page } from "@/ui";

export function KeysPage() {
  return (
    <Page title={text.keys.title}>
      <Empty icon={KeyRound} title={text.keys.emptyTitle}>
        {text.keys.emptyBody}
      </Empty>
    </Page>
  );
}
