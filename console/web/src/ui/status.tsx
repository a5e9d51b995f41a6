import { CircleAlert, CircleCheck, X } from "lucide-react";
import { useEffect, useId, useRef, useState, useSyncExternalStore } from "react";
import { ApiError } from "@/api/client";
import { text } from "@/text";
import { announce } from "./announce";
import { IconButton } from "./button";
import { focusBack } from "./focus";
import { useFootHeight } from "./foot";
import { readPreferences } from "./preferences";
import { useShortcuts } from "./shortcuts";

interface Message {
  id: number;
  words: string;
  /** For a failure. It stays until it is dismissed. */
  failure?: { why: string; requestId: string };
  action?: { label: string; run(): void };
}

const undoTime = 6000;
/** The maximum number of success messages. Failures stay until they are dismissed, however many there are. */
const mostDone = 3;
const listeners = new Set<() => void>();
let messages: readonly Message[] = [];
let count = 0;

function change(next: readonly Message[]) {
  messages = next;
  for (const tell of listeners) tell();
}
const dismiss = (id: number) => change(messages.filter((m) => m.id !== id));
const add = (message: Omit<Message, "id">) => change(kept([...messages, { ...message, id: ++count }]));

/** The messages that remain when a new one arrives. */
export function kept<M extends Pick<Message, "failure">>(all: readonly M[]): M[] {
  const done = all.filter((message) => !message.failure).slice(-mostDone);
  return all.filter((message) => message.failure || done.includes(message));
}

const status = {
  /** Reports a success; with `undo`, it can be undone for 6 seconds. */
  done(words: string, undo?: () => void) {
    add({ words, action: undo && { label: text.common.undo, run: undo } });
    announce(undo && readPreferences().singleKeys ? `${words}. ${text.common.undoByKey}` : words);
  },
  /** Reports a failure. */
  failed(words: string, error: unknown, action?: Message["action"]) {
    const why = error instanceof Error ? error.message : typeof error === "string" ? error : "";
    if (error instanceof ApiError && error.sessionEnded) return;
    add({ words, failure: { why, requestId: error instanceof ApiError ? error.requestId : "" }, action });
    announce(`${words}. ${why}`, "assertive");
  },
};

/** Reports the result of an action at the bottom of the page. */
export const useStatus = () => status;

export function StatusLine() {
  const shown = useSyncExternalStore(
    (tell) => {
      listeners.add(tell);
      return () => listeners.delete(tell);
    },
    () => messages,
  );
  const foot = useFootHeight();
  const undoable = shown.findLast(({ action, failure }) => action && !failure);
  useShortcuts([
    {
      keys: "z",
      label: text.common.undoLast,
      group: text.shell.groups.everywhere,
      run: () => undoable && act(undoable),
    },
  ]);
  if (shown.length === 0) return null;
  return (
    // Next to the navigation, and above the bars at the bottom of the page.
    <section
      aria-label={text.common.messages}
      data-messages
      style={{ bottom: foot + 16 }}
      className="pointer-events-none fixed left-4 z-50 flex w-[calc(100vw-32px)] max-w-[400px] max-h-[calc(100dvh-32px)] flex-col gap-2 overflow-y-auto md:left-[232px]"
    >
      {shown.map((message) => (
        <Line key={message.id} message={message} />
      ))}
    </section>
  );
}

/** Runs the action of a message. */
function act({ id, action }: Message) {
  dismiss(id);
  action?.run();
}

function Line({ message }: { message: Message }) {
  const { id, words, failure, action } = message;
  const [held, setHeld] = useState(false);
  const line = useRef<HTMLDivElement>(null);
  const about = useId();
  // A message stays while somebody reads it or is about to use it.
  const stays = failure !== undefined || held;
  useEffect(() => {
    if (stays) return;
    const timer = setTimeout(() => dismiss(id), undoTime);
    return () => clearTimeout(timer);
  }, [stays, id]);
  // Return the focus to where it was if the message disappears with it.
  useEffect(() => {
    const own = line.current;
    return () => {
      if (own?.contains(document.activeElement)) focusBack();
    };
  }, []);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only stays while the pointer or the focus is on it
    <div
      ref={line}
      onPointerEnter={() => setHeld(true)}
      onPointerLeave={() => setHeld(false)}
      onFocus={() => setHeld(true)}
      onBlur={() => setHeld(false)}
      className="layer-in pointer-events-auto flex shrink-0 items-start gap-2.5 rounded-lg border border-line-strong bg-raised py-2 pr-2 pl-3 text-13 shadow-menu"
    >
      {failure ? (
        <CircleAlert className="mt-1.5 size-4 shrink-0 text-bad" aria-hidden />
      ) : (
        <CircleCheck className="mt-1.5 size-4 shrink-0 text-ok" aria-hidden />
      )}
      <div className="min-w-0 flex-1 py-1 break-words">
        <div id={about} className={failure && "font-medium"}>
          {words}
        </div>
        {failure?.why && <div className="text-ink-2">{failure.why}</div>}
        {failure?.requestId && (
          <div className="font-mono text-11 text-ink-3">{text.common.reference(failure.requestId)}</div>
        )}
      </div>
      {action && (
        <button
          type="button"
          aria-describedby={about}
          className="h-7 shrink-0 rounded-md px-2 font-medium text-accent-ink hover:bg-accent-soft"
          onClick={() => act(message)}
        >
          {action.label}
        </button>
      )}
      <IconButton
        label={text.common.dismiss}
        icon={X}
        aria-describedby={about}
        className="size-7!"
        onClick={() => dismiss(id)}
      />
    </div>
  );
}
