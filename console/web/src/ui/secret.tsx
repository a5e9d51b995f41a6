import { Copy, Download } from "lucide-react";
import { type ReactNode, useRef, useState } from "react";
import { text } from "@/text";
import { announce } from "./announce";
import { Button } from "./button";
import { copyText } from "./copy";
import { Dialog } from "./dialog";
import { download } from "./download";
import { Checkbox } from "./field";
import { SecretGuard } from "./leave";

/**
 * Shows a secret once. The value exists only in the props of this component: pass it on from the response, never
 * through the query cache, the URL or storage. It closes when the person confirms that the secret is stored or not
 * needed; until then, anything else that would discard it asks first.
 */
export function SecretReveal({
  title,
  value,
  variable,
  words = text.common.secret,
  children,
  onClose,
}: {
  title: string;
  value: string;
  /** Its name in a .env file, if it belongs into one. */
  variable?: string;
  /** What the secret is called. */
  words?: { once: string; copy: string; stored: string };
  children?: ReactNode;
  /** Called with whether the person has stored it. */
  onClose(stored: boolean): void;
}) {
  const [stored, setStored] = useState(false);
  const [copied, setCopied] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const shown = useRef(true);
  const close = (whether: boolean) => {
    shown.current = false;
    onClose(whether);
  };
  const copy = async () => {
    const done = await copyText(value);
    setCopied(done);
    announce(done ? text.common.copied : text.common.copyByHand);
    if (!done) field.current?.select();
  };
  return (
    <Dialog
      title={title}
      sticky={!stored}
      wide
      onClose={() => close(stored)}
      footer={
        <>
          {!stored && (
            <Button look="ghost" onClick={() => close(false)}>
              {text.common.closeWithoutStoring}
            </Button>
          )}
          <Button look="primary" disabled={!stored} onClick={() => close(true)}>
            {text.common.close}
          </Button>
        </>
      }
    >
      {!stored && <SecretGuard takes={() => shown.current} />}
      <p>{words.once}</p>
      <div className="flex flex-wrap gap-2">
        <input
          ref={field}
          readOnly
          value={value}
          aria-label={title}
          onFocus={(e) => e.target.select()}
          className="h-8 min-w-0 flex-1 rounded-md border border-control bg-canvas max-md:basis-full px-2.5 font-mono text-12 text-ink"
          autoComplete="off"
        />
        <Button icon={Copy} onClick={copy}>
          {copied ? text.common.copied : words.copy}
        </Button>
        {variable && (
          <Button icon={Download} onClick={() => download("fairlead.env", "text/plain", `${variable}=${value}\n`)}>
            {text.common.downloadEnv}
          </Button>
        )}
      </div>
      {children}
      <Checkbox checked={stored} onChange={setStored} label={words.stored} />
    </Dialog>
  );
}
