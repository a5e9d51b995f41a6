import { useBlocker } from "@tanstack/react-router";
import { useEffect } from "react";
import { asksBeforeLeaving } from "@/api/leave";
import { text } from "@/text";
import { Confirm } from "./dialog";

/**
 * Asks before navigation discards something, and makes the browser ask before a reload or closing the tab does. Returns
 * the router's blocker: while its status is "blocked", a dialog has to ask.
 */
function useLeaveGuard(reason: string, takes: (from: string, to: string) => boolean) {
  useEffect(() => {
    asksBeforeLeaving(reason, true);
    return () => asksBeforeLeaving(reason, false);
  }, [reason]);
  return useBlocker({
    shouldBlockFn: ({ current, next }) => takes(current.pathname, next.pathname),
    enableBeforeUnload: false,
    withResolver: true,
  });
}

/** Guards unsaved changes of a form. Mount it while there are some. */
export function UnsavedGuard({ reason }: { reason: string }) {
  const way = useLeaveGuard(reason, (from, to) => from !== to);
  if (way.status !== "blocked") return null;
  const t = text.common.unsaved;
  return (
    <Confirm title={t.title} submit={t.submit} cancel={t.cancel} onSubmit={way.proceed} onClose={way.reset}>
      <p>{t.body}</p>
    </Confirm>
  );
}

/**
 * Guards a secret that is shown once, until somebody has stored it. It asks before navigation discards the secret, and
 * makes the browser ask before a reload or closing the tab does.
 */
export function SecretGuard({
  takes = () => true,
}: {
  /** Whether navigating from one path to another, or within one, discards the secret. */
  takes?(from: string, to: string): boolean;
}) {
  const way = useLeaveGuard("secret", takes);
  if (way.status !== "blocked") return null;
  return <AskToDrop onDrop={way.proceed} onKeep={way.reset} />;
}

/** Asks whether to discard a secret that was not stored. */
export function AskToDrop({ onDrop, onKeep }: { onDrop(): void; onKeep(): void }) {
  return (
    <Confirm
      title={text.common.dropTitle}
      submit={text.common.dropSubmit}
      cancel={text.common.dropCancel}
      onSubmit={onDrop}
      onClose={onKeep}
    >
      <p>{text.common.dropBody}</p>
    </Confirm>
  );
}
