import { clsx } from "clsx";
import { ChevronRight } from "lucide-react";
import { type ReactNode, useId, useState } from "react";

interface FoldState {
  open: boolean;
  /** The ID of the element that is shown while it is open. */
  id: string;
  toggle(): void;
}

/** The state of something that a FoldButton shows and hides. */
export function useFold(): FoldState {
  const [open, setOpen] = useState(false);
  return { open, id: useId(), toggle: () => setOpen(!open) };
}

export function FoldButton({
  fold: { open, id, toggle },
  small,
  className,
  children,
}: {
  fold: FoldState;
  small?: boolean;
  className: string;
  children: ReactNode;
}) {
  return (
    <button
      type="button"
      aria-expanded={open}
      aria-controls={open ? id : undefined}
      onClick={toggle}
      className={clsx("flex items-center gap-1 text-ink-2 hover:text-ink", className)}
    >
      <ChevronRight
        className={clsx(
          "shrink-0 transition-transform duration-100",
          small ? "size-3.5" : "size-4",
          open && "rotate-90",
        )}
        aria-hidden
      />
      {children}
    </button>
  );
}

/** Content that few people need, shown when its title is pressed. */
export function Fold({ title, children }: { title: string; children: ReactNode }) {
  const fold = useFold();
  return (
    <div>
      <FoldButton fold={fold} className="-ml-1 h-8 rounded-md pr-2 font-medium hover:bg-sunken">
        {title}
      </FoldButton>
      {fold.open && (
        <div id={fold.id} className="mt-2">
          {children}
        </div>
      )}
    </div>
  );
}
