/** Keys of the API, which open this console too. */
import { KeySquare } from "lucide-react";
import { SettingsPage } from "@/pages/settings";
import { text } from "@/text";
import { Empty } from "@/ui";

export function ApiKeysPage() {
  return (
    <SettingsPage title={text.settings.apiKeys}>
      <Empty icon={KeySquare} title={text.settings.apiKeys}>
        {text.settings.apiKeysBody}
      </Empty>
    </SettingsPage>
  );
}
