import { clsx } from "clsx";
import { ChevronRight } from "lucide-react";
import { type ReactNode, useId, useState } from "react";

/** What few people need: there when its title is pressed. */
export function Fold({ title, children }: { title: string; children: ReactNode }) {
  const [open, setOpen] = useState(false);
  const id = useId();
  return (
    <div>
      <button
        type="button"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => setOpen(!open)}
        className="-ml-1 flex h-8 items-center gap-1 rounded-md pr-2 font-medium text-ink-2 hover:bg-sunken hover:text-ink"
      >
        <ChevronRight
          className={clsx("size-4 shrink-0 transition-transform duration-100", open && "rotate-90")}
          aria-hidden
        />
        {title}
      </button>
      {open && (
        <div id={id} className="mt-2">
          {children}
        </div>
      )}
    </div>
  );
}
