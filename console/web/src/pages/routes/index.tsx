/** Networks behind nodes, and exit nodes: what waits and what serves. */
import { Route } from "lucide-react";
import { text } from "@/text";
import { Empty, Page } from "@/ui";

export function RoutesPage() {
  return (
    <Page title={text.routes.title}>
      <Empty icon={Route} title={text.routes.emptyTitle}>
        {text.routes.emptyBody}
      </Empty>
    </Page>
  );
}
