/** The devices and pre-auth keys of the person who is signed in. */
import { KeyRound, LockKeyhole } from "lucide-react";
import { useState } from "react";
import { useSession } from "@/api";
import { KeyActionsProvider } from "@/keys";
import { NodeActionsProvider } from "@/nodes";
import { myWords } from "@/text/my";
import { Button, Command, Empty, Page, Section, useWrites } from "@/ui";
import { CreateOwnKey } from "./CreateOwnKey";
import { Devices } from "./Devices";
import { Keys } from "./Keys";

const t = myWords;

export function MyPage() {
  const { person } = useSession();
  const [creating, setCreating] = useState(false);
  const { why } = useWrites("preauthkeys:read");
  if (!person)
    return (
      <Page title={t.title}>
        <Empty icon={LockKeyhole} title={t.nobodyTitle}>
          {t.nobody}
        </Empty>
      </Page>
    );
  return (
    <Page
      title={t.title}
      actions={
        <Button icon={KeyRound} why={why} onClick={() => setCreating(true)}>
          {t.create.open}
        </Button>
      }
    >
      <div className="grid grid-cols-[minmax(0,7fr)_minmax(0,4fr)] items-start gap-5 max-lg:grid-cols-1">
        <NodeActionsProvider>
          <Devices person={person} />
        </NodeActionsProvider>
        <div className="space-y-5">
          <AddDevice />
          <KeyActionsProvider>
            <Keys person={person} />
          </KeyActionsProvider>
        </div>
      </div>
      {creating && <CreateOwnKey person={person} onClose={() => setCreating(false)} />}
    </Page>
  );
}

function AddDevice() {
  const { coordinator } = useSession();
  return (
    <Section title={t.add.title}>
      <div className="space-y-3 p-4 text-ink-2">
        <p>{t.add.body}</p>
        <Command value={`tailscale up --login-server=${coordinator.url}`} what={t.add.command} />
        <p>{t.add.app}</p>
        <Command value={coordinator.url} what={t.add.address} />
        <p>{t.add.noBrowser}</p>
      </div>
    </Section>
  );
}
