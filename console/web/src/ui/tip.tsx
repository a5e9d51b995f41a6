import { Slot } from "radix-ui";
import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import { createPortal } from "react-dom";

const delay = 400;
/** Time for the pointer to reach the words, which can be read and selected. */
const grace = 120;

/**
 * Words about a control, on hover and on focus. They repeat or add; nothing is said here alone that must be known. Lists
 * have hundreds of these, so that one at rest is no more than its control.
 */
export function Tip({ label, children }: { label: ReactNode; children: ReactNode }) {
  const [at, setAt] = useState<DOMRect | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const id = useId();
  useEffect(() => () => clearTimeout(timer.current), []);
  if (!label) return children;
  const later = (rect: DOMRect | null, after: number) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setAt(rect), after);
  };
  const hide = () => {
    clearTimeout(timer.current);
    setAt(null);
  };
  return (
    <>
      <Slot.Root
        aria-describedby={at ? id : undefined}
        onPointerEnter={(e) => e.pointerType === "mouse" && later(e.currentTarget.getBoundingClientRect(), delay)}
        onPointerLeave={() => later(null, grace)}
        onPointerDown={hide}
        onFocus={(e) => e.currentTarget.matches(":focus-visible") && later(e.currentTarget.getBoundingClientRect(), 0)}
        onBlur={hide}
      >
        {children}
      </Slot.Root>
      {at && (
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

interface BubbleProps {
  id: string;
  at: DOMRect;
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
    const left = Math.min(Math.max(at.left + at.width / 2 - width / 2, 8), innerWidth - width - 8);
    const above = at.top - height - 6;
    bubble.style.left = `${left}px`;
    bubble.style.top = `${above > 8 ? above : at.bottom + 6}px`;
    bubble.style.visibility = "visible";
  }, [at]);
  useEffect(() => {
    const key = (event: KeyboardEvent) => event.key === "Escape" && onHide();
    document.addEventListener("keydown", key, true);
    document.addEventListener("scroll", onHide, true);
    return () => {
      document.removeEventListener("keydown", key, true);
      document.removeEventListener("scroll", onHide, true);
    };
  });
  return createPortal(
    <div
      ref={box}
      id={id}
      role="tooltip"
      onPointerEnter={onStay}
      onPointerLeave={onLeave}
      style={{ visibility: "hidden", left: 0, top: 0 }}
      className="fixed z-50 max-w-80 rounded-md bg-ink px-2 py-1 text-12 break-words text-canvas shadow-menu"
    >
      {children}
    </div>,
    document.body,
  );
}
