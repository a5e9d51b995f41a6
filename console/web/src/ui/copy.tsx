import { clsx } from "clsx";
import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { text } from "@/text";
import { announce } from "./announce";
import { Tip } from "./tip";

/** Copies text to the clipboard, also over plain HTTP, where the browser has no clipboard API. */
export async function copyText(value: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(value);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = value;
    field.readOnly = true;
    field.className = "fixed top-0 left-0 opacity-0";
    const focused = document.activeElement;
    // Inside an open dialog, which traps the focus.
    (focused?.closest('[role="dialog"]') ?? document.body).append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    if (focused instanceof HTMLElement) focused.focus();
    return done;
  }
}

/** Like the copy button, but for a menu, which is closed by then: announces whether it worked. */
export async function copyAloud(value: string) {
  announce((await copyText(value)) ? text.common.copied : text.common.copyByHand);
}

export function CopyButton({
  value,
  what,
  className,
  onCopied,
}: {
  value: string;
  what: string;
  className?: string;
  onCopied?(): void;
}) {
  const [state, setState] = useState<"idle" | "done" | "failed">("idle");
  useEffect(() => {
    if (state === "idle") return;
    const timer = setTimeout(() => setState("idle"), 2000);
    return () => clearTimeout(timer);
  }, [state]);
  const label = text.common.copy(what);
  const shown = { idle: label, done: text.common.copied, failed: text.common.copyByHand }[state];
  return (
    <Tip label={shown} repeats>
      <button
        type="button"
        aria-label={label}
        onClick={async (event) => {
          event.stopPropagation();
          const done = await copyText(value);
          setState(done ? "done" : "failed");
          if (done) onCopied?.();
          announce(done ? text.common.copied : text.common.copyByHand);
        }}
        className={clsx(
          "grid size-6 max-md:size-8 shrink-0 place-items-center rounded text-ink-3 hover:bg-sunken hover:text-ink",
          className,
        )}
      >
        {state === "done" ? (
          <Check className="size-3.5 text-ok" aria-hidden />
        ) : (
          <Copy className="size-3.5" aria-hidden />
        )}
      </button>
    </Tip>
  );
}
