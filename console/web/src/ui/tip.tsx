import { Slot } from "radix-ui";
import { type MouseEvent, type PointerEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";
import { createPortal } from "react-dom";
import { landmark } from "./focus";

const delay = 400;
/** Time for the pointer to reach the tooltip, whose text can be read and selected. */
const grace = 120;
/** How long a touch must last to show the tooltip instead of activating the control. */
const rest = 500;

/**
 * A tooltip, on hover and focus. On touch screens a tap shows it where a tap does nothing else, and a long press on
 * other controls. It repeats or adds information; it is never the only place for something that users must know. Lists
 * have hundreds of these, so an inactive one renders only its control.
 */
export function Tip({
  label,
  repeats,
  children,
}: {
  label: ReactNode;
  /** Whether it only repeats the name of the control, so that screen readers skip it. */
  repeats?: boolean;
  children: ReactNode;
}) {
  const [at, setAt] = useState<Place | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const told = useRef(false);
  const id = useId();
  useEffect(() => () => clearTimeout(timer.current), []);
  const later = (control: Element | null, after: number) => {
    clearTimeout(timer.current);
    const place = control && placeOf(control);
    if (label) timer.current = setTimeout(() => setAt(place), after);
  };
  const hide = () => {
    clearTimeout(timer.current);
    setAt(null);
  };
  const down = (event: PointerEvent<HTMLElement>) => {
    hide();
    told.current = false;
    if (!label || event.pointerType === "mouse" || !isUsed(event.currentTarget)) return;
    const place = placeOf(event.currentTarget);
    timer.current = setTimeout(() => {
      told.current = true;
      setAt(place);
    }, rest);
  };
  const up = (event: PointerEvent<HTMLElement>) => {
    if (event.pointerType === "mouse" || told.current) return;
    if (isUsed(event.currentTarget)) return hide();
    told.current = Boolean(label);
    later(event.currentTarget, 0);
  };
  // A touch that showed the tooltip must not also activate the control or the row around it.
  const click = (event: MouseEvent) => {
    const words = told.current;
    told.current = false;
    // A long press may cause no click; a click without a pointer comes from a key or a screen reader.
    if (!words || event.detail === 0) return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <>
      <Slot.Root
        aria-describedby={at && label && !repeats ? id : undefined}
        onPointerEnter={(e) => e.pointerType === "mouse" && later(e.currentTarget, delay)}
        onPointerLeave={(e) => e.pointerType === "mouse" && later(null, grace)}
        onPointerDown={down}
        onPointerUp={up}
        onPointerCancel={hide}
        onClickCapture={click}
        onContextMenu={(e) => told.current && e.preventDefault()}
        onFocus={(e) => e.currentTarget.matches(":focus-visible") && later(e.currentTarget, 0)}
        // Not at once: if content of a dialog goes away before the next control has the focus, the dialog takes the focus.
        onBlur={() => later(null, 0)}
      >
        {children}
      </Slot.Root>
      {at && label && (
        <Bubble
          id={id}
          at={at}
          onHide={hide}
          onStay={() => clearTimeout(timer.current)}
          onLeave={() => later(null, grace)}
        >
          {label}
        </Bubble>
      )}
    </>
  );
}

interface Place {
  rect: DOMRect;
  /** What the tooltip is rendered into: the dialog or the landmark that its control belongs to. */
  host: Element;
}

const placeOf = (control: Element): Place => ({
  rect: control.getBoundingClientRect(),
  host: control.closest('[role="dialog"]') ?? landmark() ?? document.body,
});

/** Whether a tap does something here. */
function isUsed(element: Element): boolean {
  const control = element.closest(
    'button, a, [role="button"], [role="slider"], [role="switch"], [role="checkbox"], [role="menuitem"]',
  );
  return control !== null && control.getAttribute("aria-disabled") !== "true";
}

interface BubbleProps {
  id: string;
  at: Place;
  children: ReactNode;
  onHide(): void;
  onStay(): void;
  onLeave(): void;
}

function Bubble({ id, at, children, onHide, onStay, onLeave }: BubbleProps) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const bubble = box.current;
    if (!bubble) return;
    const { width, height } = bubble.getBoundingClientRect();
    const { rect } = at;
    const left = Math.min(Math.max(rect.left + rect.width / 2 - width / 2, 8), innerWidth - width - 8);
    const above = rect.top - height - 6;
    bubble.style.left = `${left}px`;
    bubble.style.top = `${above > 8 ? above : rect.bottom + 6}px`;
    bubble.style.visibility = "visible";
  }, [at]);
  useEffect(() => {
    const key = (event: KeyboardEvent) => event.key === "Escape" && onHide();
    document.addEventListener("keydown", key, true);
    document.addEventListener("scroll", onHide, true);
    // On touch screens there is no pointer leave, so hide it when something else is touched.
    const touch = (event: globalThis.PointerEvent) => {
      if (event.pointerType !== "mouse" && !box.current?.contains(event.target as Element)) onHide();
    };
    document.addEventListener("pointerdown", touch, true);
    return () => {
      document.removeEventListener("keydown", key, true);
      document.removeEventListener("scroll", onHide, true);
      document.removeEventListener("pointerdown", touch, true);
    };
  });
  return createPortal(
    <div
      ref={box}
      id={id}
      role="tooltip"
      onPointerEnter={onStay}
      onPointerLeave={(event) => event.pointerType === "mouse" && onLeave()}
      style={{ visibility: "hidden", left: 0, top: 0 }}
      className="fixed z-50 max-w-80 rounded-md bg-ink px-2 py-1 text-12 break-words text-canvas shadow-menu"
    >
      {children}
    </div>,
    at.host,
  );
}
