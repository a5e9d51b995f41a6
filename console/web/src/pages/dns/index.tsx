/** What devices are told about names. */
import { Globe } from "lucide-react";
import { SettingsPage } from "@/pages/settings";
import { text } from "@/text";
import { Empty } from "@/ui";

export function DNSPage() {
  return (
    <SettingsPage title={text.settings.dns}>
      <Empty icon={Globe} title={text.settings.dns}>
        {text.settings.dnsBody}
      </Empty>
    </SettingsPage>
  );
}
