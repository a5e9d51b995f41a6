import { clsx } from "clsx";
import type { LucideIcon } from "lucide-react";
import type { ComponentProps, ReactNode } from "react";
import { Tip } from "./tip";

const looks = {
  primary: "bg-accent text-on-accent hover:brightness-110 max-md:h-11",
  plain: "border border-line-strong bg-surface text-ink hover:bg-sunken",
  ghost: "text-ink-2 hover:bg-sunken hover:text-ink",
  danger: "bg-bad text-on-bad hover:brightness-110 max-md:h-11",
  "ghost-danger": "text-bad hover:bg-bad-soft",
};

export interface ButtonProps extends ComponentProps<"button"> {
  look?: keyof typeof looks;
  icon?: LucideIcon;
  busy?: boolean;
  /** Why it is disabled; empty if it is enabled. Unlike a greyed-out button, it stays focusable and says why. */
  why?: string;
}

const shape =
  "inline-flex h-8 shrink-0 items-center justify-center gap-1.5 rounded-md px-3 text-13 font-medium whitespace-nowrap transition-colors duration-100 disabled:cursor-not-allowed disabled:opacity-55 aria-disabled:cursor-not-allowed aria-disabled:opacity-55";

export function Button({
  look = "plain",
  icon: Icon,
  busy,
  why,
  className,
  children,
  type = "button",
  ...rest
}: ButtonProps) {
  return (
    <Tip label={why}>
      <button
        type={why ? "button" : type}
        className={clsx(shape, looks[look], className)}
        aria-busy={busy || undefined}
        {...rest}
        {...idle(why)}
      >
        {Icon && <Icon className="size-4 shrink-0" aria-hidden />}
        {children}
      </button>
    </Tip>
  );
}

/** The properties that disable a control, if there is a reason to. */
const idle = (why: string | undefined) => (why ? { "aria-disabled": true, onClick: undefined } : undefined);

/** The style of a button, for a link. */
export const linkButton = (look: keyof typeof looks = "plain") => clsx(shape, looks[look]);

/** A button with only an icon. The label is its accessible name and its tooltip. */
export function IconButton({
  label,
  icon: Icon,
  className,
  tip = label,
  why,
  ...rest
}: Omit<ComponentProps<"button">, "children"> & { label: string; icon: LucideIcon; tip?: ReactNode; why?: string }) {
  return (
    <Tip label={why || tip} repeats={!why && tip === label}>
      <button
        type="button"
        aria-label={label}
        className={clsx(
          "grid size-8 shrink-0 place-items-center rounded-md text-ink-2 hover:bg-sunken hover:text-ink aria-disabled:cursor-not-allowed aria-disabled:opacity-55 data-[state=open]:bg-sunken",
          className,
        )}
        {...rest}
        {...idle(why)}
      >
        <Icon className="size-4" aria-hidden />
      </button>
    </Tip>
  );
}
