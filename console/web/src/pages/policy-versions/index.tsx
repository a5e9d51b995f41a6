/** The versions of the policy, and one of them. */
import { useParams } from "@tanstack/react-router";
import { History } from "lucide-react";
import { text } from "@/text";
import { Empty, Page } from "@/ui";

export function PolicyVersionsPage() {
  return (
    <Page title={text.policy.versionsTitle}>
      <Empty icon={History} title={text.policy.versionsTitle} />
    </Page>
  );
}

export function PolicyVersionPage() {
  const { version } = useParams({ from: "/policy/versions/$version" });
  return (
    <Page title={text.policy.versionTitle(version)}>
      <Empty icon={History} title={text.policy.versionTitle(version)} />
    </Page>
  );
}
