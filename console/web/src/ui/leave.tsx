import { useBlocker } from "@tanstack/react-router";
import { useEffect } from "react";
import { asksBeforeLeaving } from "@/api/leave";
import { text } from "@/text";
import { Confirm } from "./dialog";

/**
 * Stands beside a secret that is shown once while nobody has stored it. It asks before another page takes the secret
 * away, and lets the browser ask before a reload, or the end of the tab, does.
 */
export function SecretGuard({
  takes = () => true,
}: {
  /** Whether the way from one path to another, or within one, takes the secret away. */
  takes?(from: string, to: string): boolean;
}) {
  useEffect(() => {
    asksBeforeLeaving("secret", true);
    return () => asksBeforeLeaving("secret", false);
  }, []);
  const way = useBlocker({
    shouldBlockFn: ({ current, next }) => takes(current.pathname, next.pathname),
    enableBeforeUnload: false,
    withResolver: true,
  });
  if (way.status !== "blocked") return null;
  return <AskToDrop onDrop={way.proceed} onKeep={way.reset} />;
}

/** Asks whether a secret that is shown once may go unstored. */
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
