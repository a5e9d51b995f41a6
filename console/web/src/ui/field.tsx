import { clsx } from "clsx";
import { Check, ChevronDown, Minus } from "lucide-react";
import { Switch as RadixSwitch } from "radix-ui";
import { type ComponentProps, type ReactNode, useId } from "react";
import { Tip } from "./tip";

const box =
  "w-full rounded-md border border-control bg-surface text-13 text-ink outline-offset-0 disabled:opacity-60 aria-invalid:border-bad";

export function Input({ className, mono, ...rest }: ComponentProps<"input"> & { mono?: boolean }) {
  return (
    <input
      className={clsx(box, "h-8 px-2.5 placeholder:text-13 max-md:text-[16px]", mono && "font-mono", className)}
      autoComplete="off"
      spellCheck={false}
      {...rest}
    />
  );
}

export function TextArea({ className, mono, ...rest }: ComponentProps<"textarea"> & { mono?: boolean }) {
  return (
    <textarea
      className={clsx(box, "px-2.5 py-1.5 max-md:text-[16px]", mono && "font-mono", className)}
      spellCheck={false}
      {...rest}
    />
  );
}

/** A native select, which every device can display. */
export function Select({ className, children, ...rest }: ComponentProps<"select">) {
  return (
    <span className={clsx("relative inline-flex", className)}>
      <select className={clsx(box, "h-8 appearance-none pr-8 pl-2.5")} {...rest}>
        {children}
      </select>
      <ChevronDown className="pointer-events-none absolute top-2 right-2 size-4 text-ink-3" aria-hidden />
    </span>
  );
}

/** A label, a control, a hint and an error. The control gets the IDs. */
export function Field({
  label,
  hint,
  error,
  children,
}: {
  label: string;
  hint?: ReactNode;
  error?: ReactNode;
  children(control: { id: string; "aria-describedby"?: string; "aria-invalid"?: true }): ReactNode;
}) {
  const id = useId();
  const about = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  return (
    <div className="space-y-1.5">
      <label htmlFor={id} className="block text-13 font-medium text-ink">
        {label}
      </label>
      {children({ id, "aria-describedby": about || undefined, "aria-invalid": error ? true : undefined })}
      {hint && (
        <div id={`${id}-hint`} className="text-12 text-ink-2">
          {hint}
        </div>
      )}
      {error && (
        <div id={`${id}-error`} className="text-12 text-bad" role="alert">
          {error}
        </div>
      )}
    </div>
  );
}

export function Checkbox({
  checked,
  onChange,
  label,
  hideLabel,
  about,
  disabled,
}: {
  checked: boolean | "indeterminate";
  onChange(checked: boolean, event?: { shiftKey: boolean }): void;
  label: string;
  hideLabel?: boolean;
  /** What it means, in smaller text below it. */
  about?: string;
  disabled?: boolean;
}) {
  const id = useId();
  const control = (
    // Lists have one in each row, so it is just a button.
    // biome-ignore lint/a11y/useSemanticElements: no input shows three states in our colours
    <button
      type="button"
      role="checkbox"
      id={id}
      aria-checked={checked === "indeterminate" ? "mixed" : checked}
      data-state={checked === "indeterminate" ? checked : checked ? "checked" : "unchecked"}
      disabled={disabled}
      aria-label={hideLabel ? label : undefined}
      aria-describedby={about ? `${id}-about` : undefined}
      onClick={(event) => onChange(checked !== true, event)}
      // As in every browser, Enter does not toggle a checkbox.
      onKeyDown={(event) => event.key === "Enter" && event.preventDefault()}
      className="relative grid size-4 shrink-0 place-items-center rounded border border-control bg-surface text-on-accent not-pointer-coarse:after:absolute not-pointer-coarse:after:-inset-1 disabled:opacity-55 data-[state=checked]:border-accent data-[state=checked]:bg-accent data-[state=indeterminate]:border-accent data-[state=indeterminate]:bg-accent"
    >
      {checked === "indeterminate" ? (
        <Minus className="size-3" strokeWidth={3} aria-hidden />
      ) : (
        checked && <Check className="size-3" strokeWidth={3} aria-hidden />
      )}
    </button>
  );
  if (hideLabel) return control;
  const line = (
    <span className="inline-flex items-center gap-2">
      {control}
      <label htmlFor={id} className="text-ink">
        {label}
      </label>
    </span>
  );
  if (!about) return line;
  return (
    <div>
      {line}
      <p id={`${id}-about`} className="pl-6 text-12 text-ink-2">
        {about}
      </p>
    </div>
  );
}

export function Switch({
  checked,
  onChange,
  label,
  disabled,
  why,
  id,
}: {
  checked: boolean;
  onChange(on: boolean): void;
  label?: string;
  disabled?: boolean;
  /** Why it is disabled; empty if it is enabled. */
  why?: string;
  id?: string;
}) {
  return (
    <Tip label={why}>
      <RadixSwitch.Root
        id={id}
        checked={checked}
        onCheckedChange={(on) => !why && onChange(on)}
        disabled={disabled}
        aria-disabled={why ? true : undefined}
        aria-label={label}
        className="relative h-5 w-9 shrink-0 rounded-full max-md:h-7 max-md:w-12 border border-control bg-sunken transition-colors duration-100 not-pointer-coarse:after:absolute not-pointer-coarse:after:-inset-1 disabled:opacity-55 aria-disabled:cursor-not-allowed aria-disabled:opacity-55 data-[state=checked]:border-accent data-[state=checked]:bg-accent"
      >
        <RadixSwitch.Thumb className="block size-3.5 translate-x-0.5 rounded-full bg-control transition-transform duration-100 data-[state=checked]:translate-x-[18px] data-[state=checked]:bg-on-accent max-md:size-5 max-md:data-[state=checked]:translate-x-6" />
      </RadixSwitch.Root>
    </Tip>
  );
}
