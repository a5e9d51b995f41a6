import { clsx } from "clsx";
import { X } from "lucide-react";
import { Dialog as D } from "radix-ui";
import { type FormEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";
import { text } from "@/text";
import { Button, IconButton } from "./button";
import { Field, Input } from "./field";
import { focusOnMistake, returnFocus, useBorrowedFocus } from "./focus";
import { busy } from "./shortcuts";

interface DialogProps {
  title: ReactNode;
  children: ReactNode;
  /** The buttons, with the primary one last. */
  footer?: ReactNode;
  onClose(): void;
  /** Whether clicks outside and Esc do nothing, so that only its own buttons close the dialog. */
  sticky?: boolean;
  wide?: boolean;
  /** Makes it a form: Enter submits. */
  onSubmit?(): void;
}

/** A modal dialog. It is open while it is rendered, traps the focus, and returns it. */
export function Dialog({ title, children, footer, onClose, sticky, wide, onSubmit }: DialogProps) {
  const submit = (event: FormEvent<HTMLElement>) => {
    event.preventDefault();
    event.stopPropagation();
    onSubmit?.();
    focusOnMistake(event.currentTarget);
  };
  const hold = (event: Event) => sticky && event.preventDefault();
  const Body = onSubmit ? "form" : "div";
  return (
    <D.Root open onOpenChange={(open) => !open && onClose()}>
      <D.Portal>
        <D.Overlay className="fixed inset-0 z-50 bg-black/40 dark:bg-black/60" />
        <D.Content
          aria-describedby={undefined}
          tabIndex={-1}
          onOpenAutoFocus={(event) => {
            // A field may already have taken the focus; otherwise no button should get it by chance.
            const content = event.currentTarget as HTMLElement;
            event.preventDefault();
            if (!content.contains(document.activeElement)) content.focus();
          }}
          onCloseAutoFocus={returnFocus}
          onEscapeKeyDown={hold}
          onInteractOutside={hold}
          className={clsx(
            "layer-in fixed inset-x-4 top-[12vh] z-50 mx-auto flex max-h-[80vh] flex-col rounded-lg border border-line-strong bg-raised shadow-bar outline-none",
            wide ? "max-w-[720px]" : "max-w-[460px]",
          )}
        >
          <Body
            className="flex min-h-0 flex-col"
            onSubmit={onSubmit ? submit : undefined}
            noValidate={onSubmit ? true : undefined}
          >
            <div className="flex items-start gap-3 px-5 pt-4 pb-2">
              <D.Title className="min-w-0 flex-1 text-14 font-semibold break-words">{title}</D.Title>
              {!sticky && (
                <D.Close asChild>
                  <IconButton label={text.common.close} icon={X} className="-mt-1.5 -mr-2" />
                </D.Close>
              )}
            </div>
            <div
              tabIndex={footer ? undefined : 0}
              className="min-h-0 space-y-3 overflow-y-auto px-5 pt-1 pb-4 text-13 text-ink-2 -outline-offset-2"
            >
              {children}
            </div>
            {footer && (
              <div className="flex flex-wrap justify-end gap-2 border-t border-line px-5 py-3 max-md:[&>button]:h-11">
                {footer}
              </div>
            )}
          </Body>
        </D.Content>
      </D.Portal>
    </D.Root>
  );
}

/**
 * Asks before something that cannot be undone. The body names the consequences; the button repeats the verb and the
 * object. With `word`, the person has to type it first.
 */
export function Confirm({
  title,
  children,
  submit,
  cancel = text.common.cancel,
  word,
  danger = true,
  busy,
  disabled,
  error,
  call,
  onSubmit,
  onClose,
}: {
  title: string;
  children: ReactNode;
  submit: string;
  cancel?: string;
  word?: string;
  danger?: boolean;
  busy?: boolean;
  /** Whether something required is still missing. */
  disabled?: boolean;
  error?: ReactNode;
  /** The ApiCall that shows the request. */
  call?: ReactNode;
  onSubmit(): void;
  onClose(): void;
}) {
  const [typed, setTyped] = useState("");
  const ready = (word === undefined || typed.trim() === word) && !busy && !disabled;
  return (
    <Dialog
      title={title}
      onClose={onClose}
      onSubmit={() => ready && onSubmit()}
      footer={
        <>
          {call}
          <Button onClick={onClose}>{cancel}</Button>
          <Button type="submit" look={danger ? "danger" : "primary"} disabled={!ready} busy={busy}>
            {submit}
          </Button>
        </>
      }
    >
      {children}
      {word !== undefined && (
        <Field label={text.common.typeToConfirm(word)}>
          {(control) => (
            <Input {...control} mono value={typed} onChange={(e) => setTyped(e.target.value)} autoFocus={!disabled} />
          )}
        </Field>
      )}
      {error}
    </Dialog>
  );
}

/**
 * Details next to a list, which stays usable. Full-screen on a phone. Esc closes it from inside, and from anywhere if
 * nothing is on top of it and nobody is typing.
 */
export function SidePanel({
  title,
  children,
  onClose,
  actions,
}: {
  title: ReactNode;
  children: ReactNode;
  onClose(): void;
  actions?: ReactNode;
}) {
  const id = useId();
  const panel = useRef<HTMLElement>(null);
  useBorrowedFocus(() => panel.current);
  const closes = useRef(onClose);
  closes.current = onClose;
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key === "Escape" && !event.defaultPrevented && !busy(event.target)) closes.current();
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, []);
  return (
    <aside
      ref={panel}
      data-panel
      tabIndex={-1}
      aria-labelledby={id}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.defaultPrevented) return;
        event.stopPropagation();
        onClose();
      }}
      className="sheet-in z-20 flex w-[440px] shrink-0 flex-col border-l border-line bg-surface outline-none max-[1100px]:fixed max-[1100px]:z-40 max-[1100px]:top-14 max-[1100px]:right-0 max-[1100px]:bottom-0 max-[1100px]:shadow-bar max-md:top-0 max-md:w-full max-md:shadow-none"
    >
      <div className="flex h-14 shrink-0 items-center gap-2 border-b border-line pr-3 pl-5">
        <h2 id={id} className="min-w-0 flex-1 truncate text-14 font-semibold">
          {title}
        </h2>
        {actions}
        <IconButton label={text.common.close} icon={X} onClick={onClose} />
      </div>
      <div className="min-h-0 flex-1 overflow-y-auto p-5">{children}</div>
    </aside>
  );
}
