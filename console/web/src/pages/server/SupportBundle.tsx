import { useQuery } from "@tanstack/react-query";
import { Copy, Download } from "lucide-react";
import { useMemo } from "react";
import { dnsQuery, type ServerState, useCan, useNodes, usePolicy, useSession, useUsers } from "@/api";
import { text } from "@/text";
import { serverPage as t } from "@/text/settings";
import { Button, copyText, download, Fold, Section, useStatus } from "@/ui";
import { supportBundle } from "./bundle";

/** What to attach to a support request, shown before it is sent. */
export function SupportBundle({ server }: { server: ServerState }) {
  const session = useSession();
  const status = useStatus();
  const can = useCan();
  const { data: dns } = useQuery({ ...dnsQuery, enabled: can("dns:read") });
  const { data: policy } = usePolicy();
  const { data: nodes } = useNodes();
  const { data: users } = useUsers();
  const bundle = useMemo(
    () =>
      JSON.stringify(
        supportBundle({
          at: new Date().toISOString(),
          browser: navigator.userAgent,
          session,
          server,
          dns: dns?.data,
          policy: policy?.policy,
          nodes: nodes?.items,
          users: users?.items.length,
        }),
        null,
        2,
      ),
    [session, server, dns, policy, nodes, users],
  );
  const copy = async () => {
    if (await copyText(bundle)) status.done(t.bundle.copied);
    else status.failed(text.common.copyByHand, "");
  };
  return (
    <Section title={t.bundle.title}>
      <div className="space-y-3 p-4">
        <p className="text-ink-2">{t.bundle.body}</p>
        <div className="flex flex-wrap gap-2">
          <Button icon={Copy} onClick={() => void copy()}>
            {t.bundle.copy}
          </Button>
          <Button icon={Download} onClick={() => download("fairlead-support.json", "application/json", bundle)}>
            {t.bundle.download}
          </Button>
        </div>
        <Fold title={t.bundle.show}>
          <pre
            // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard
            tabIndex={0}
            className="max-h-80 overflow-auto rounded-md bg-chip p-3 font-mono text-12"
          >
            {bundle}
          </pre>
        </Fold>
      </div>
    </Section>
  );
}
