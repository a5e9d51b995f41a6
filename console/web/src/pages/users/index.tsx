/** The people who own nodes. */
import { Users } from "lucide-react";
import { text } from "@/text";
import { Empty, Page } from "@/ui";

export function UsersPage() {
  return (
    <Page title={text.users.title}>
      <Empty icon={Users} title={text.users.emptyTitle}>
        {text.users.emptyBody}
      </Empty>
    </Page>
  );
}
