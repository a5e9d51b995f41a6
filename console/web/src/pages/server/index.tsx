/** What the server is and how it is. */
import { ServerCog } from "lucide-react";
import { SettingsPage } from "@/pages/settings";
import { text } from "@/text";
import { Empty } from "@/ui";

export function ServerPage() {
  return (
    <SettingsPage title={text.settings.server}>
      <Empty icon={ServerCog} title={text.settings.server}>
        {text.settings.serverBody}
      </Empty>
    </SettingsPage>
  );
}
