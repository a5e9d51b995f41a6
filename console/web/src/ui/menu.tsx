import { clsx } from "clsx";
import { Check, ChevronRight, type LucideIcon, MoreHorizontal } from "lucide-react";
import { DropdownMenu as M, Slot } from "radix-ui";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { text } from "@/text";
import { Kbd } from "./badge";
import { landmark, openedFrom } from "./focus";
import { Tip } from "./tip";

/**
 * A button with a menu of actions. The trigger is one element that takes a ref. Lists have one in each row, so it
 * renders only the button until the pointer or the focus reaches it.
 */
export function Menu({
  trigger,
  children,
  align = "end",
  label,
}: {
  trigger: ReactNode;
  children: ReactNode;
  align?: "start" | "end";
  label?: string;
}) {
  const [ready, setReady] = useState<"no" | "focused" | "open" | "yes">("no");
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (ready === "open") openedFrom(button.current);
  }, [ready]);
  if (ready === "no")
    return (
      <Slot.Root
        aria-haspopup="menu"
        aria-expanded={false}
        data-state="closed"
        onPointerEnter={() => setReady("yes")}
        onFocus={() => setReady("focused")}
        onPointerDown={(event) => {
          if (event.button !== 0 || event.ctrlKey) return;
          event.preventDefault();
          setReady("open");
        }}
      >
        {trigger}
      </Slot.Root>
    );
  return (
    <M.Root
      modal={false}
      defaultOpen={ready === "open"}
      onOpenChange={(open) => {
        if (open) openedFrom(button.current);
      }}
    >
      <M.Trigger ref={button} asChild autoFocus={ready === "focused"}>
        {trigger}
      </M.Trigger>
      <M.Portal container={landmark()}>
        <M.Content
          align={align}
          sideOffset={4}
          collisionPadding={8}
          aria-label={label}
          className="layer-in z-40 max-h-(--radix-dropdown-menu-content-available-height) min-w-48 overflow-y-auto rounded-lg border border-line-strong bg-raised p-1 text-13 shadow-menu"
        >
          {children}
        </M.Content>
      </M.Portal>
    </M.Root>
  );
}

const item =
  "flex h-8 max-md:h-10 items-center gap-2 rounded-md px-2 outline-none select-none aria-disabled:opacity-55 data-[disabled]:opacity-55 data-[highlighted]:bg-sunken dark:data-[highlighted]:bg-chip";

export function MenuItem({
  icon: Icon,
  children,
  onSelect,
  danger,
  keyHint,
  why,
}: {
  icon?: LucideIcon;
  children: ReactNode;
  onSelect(): void;
  danger?: boolean;
  keyHint?: string;
  /** Why it is disabled; empty if it is enabled. */
  why?: string;
}) {
  return (
    <Tip label={why}>
      <M.Item
        className={clsx(item, danger && "text-bad data-[highlighted]:bg-bad-soft dark:data-[highlighted]:bg-bad-soft")}
        onSelect={why ? (event) => event.preventDefault() : onSelect}
        aria-disabled={why ? true : undefined}
      >
        {Icon && <Icon className={clsx("size-4", !danger && "text-ink-3")} aria-hidden />}
        <span className="flex-1">{children}</span>
        {keyHint && (
          <span className="max-md:hidden" aria-hidden>
            <Kbd>{keyHint}</Kbd>
          </span>
        )}
      </M.Item>
    </Tip>
  );
}

/** Stays open, so that several can be toggled. */
export function MenuCheck({
  checked,
  onChange,
  children,
  disabled,
}: {
  checked: boolean;
  onChange(on: boolean): void;
  children: ReactNode;
  disabled?: boolean;
}) {
  return (
    <M.CheckboxItem
      className={item}
      checked={checked}
      onCheckedChange={onChange}
      onSelect={(e) => e.preventDefault()}
      disabled={disabled}
    >
      <span
        className={clsx(
          "grid size-4 place-items-center rounded border",
          checked ? "border-accent bg-accent text-on-accent" : "border-control",
        )}
      >
        <M.ItemIndicator>
          <Check className="size-3" strokeWidth={3} aria-hidden />
        </M.ItemIndicator>
      </span>
      {children}
    </M.CheckboxItem>
  );
}

export function MenuRadio<V extends string>({
  value,
  onChange,
  choices,
}: {
  value: V;
  onChange(value: V): void;
  choices: Record<V, string>;
}) {
  return (
    <M.RadioGroup value={value} onValueChange={(v) => onChange(v as V)}>
      {(Object.keys(choices) as V[]).map((key) => (
        <M.RadioItem key={key} value={key} className={item} onSelect={(e) => e.preventDefault()}>
          <span className="grid size-4 place-items-center">
            <M.ItemIndicator>
              <Check className="size-4 text-accent" aria-hidden />
            </M.ItemIndicator>
          </span>
          {choices[key]}
        </M.RadioItem>
      ))}
    </M.RadioGroup>
  );
}

export function MenuGroup({ label, children }: { label: string; children: ReactNode }) {
  return (
    <M.Group aria-label={label}>
      <M.Label aria-hidden className="px-2 pt-2 pb-1 text-11 font-semibold text-ink-3">
        {label}
      </M.Label>
      {children}
    </M.Group>
  );
}

/** A collapsed group. The count says how many of its items are selected. */
export function MenuFold({ label, count, children }: { label: string; count: number; children: ReactNode }) {
  const [open, setOpen] = useState(false);
  return (
    <M.Group aria-label={label}>
      <M.Item
        className={item}
        aria-expanded={open}
        onSelect={(event) => {
          event.preventDefault();
          setOpen(!open);
        }}
      >
        <ChevronRight
          className={clsx("size-4 text-ink-3 transition-transform duration-100", open && "rotate-90")}
          aria-hidden
        />
        <span className="flex-1">{label}</span>
        {count > 0 && <span className="text-12 text-accent-ink tabular-nums">{count}</span>}
      </M.Item>
      {open && children}
    </M.Group>
  );
}

export const MenuLine = () => <M.Separator className="my-1 h-px bg-line" />;

/** The actions menu of a row, for the object with this name. */
export function RowMenu({ name, children }: { name: string; children: ReactNode }) {
  return (
    <Menu
      trigger={
        <button
          type="button"
          aria-label={text.common.actionsFor(name)}
          className="inline-grid size-8 place-items-center rounded-md text-ink-2 hover:bg-sunken hover:text-ink data-[state=open]:bg-sunken"
        >
          <MoreHorizontal className="size-4" aria-hidden />
        </button>
      }
    >
      {children}
    </Menu>
  );
}
