/** Adding a device: what kind it is, the steps on it, and waiting until it is there. */
import { MonitorSmartphone } from "lucide-react";
import { text } from "@/text";
import { Empty, Page } from "@/ui";

export function AddDevicePage() {
  return (
    <Page title={text.nodes.addTitle}>
      <Empty icon={MonitorSmartphone} title={text.nodes.addTitle} />
    </Page>
  );
}
