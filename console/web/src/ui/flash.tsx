import { type ReactNode, useEffect, useRef, useState } from "react";

/** Highlights its content for a moment when the value changes, at most once in 5 seconds. */
export function Flash({ value, children, className }: { value: unknown; children: ReactNode; className?: string }) {
  const before = useRef(value);
  const last = useRef(0);
  const [on, setOn] = useState(false);
  useEffect(() => {
    if (Object.is(before.current, value)) return;
    before.current = value;
    if (Date.now() - last.current < 5000) return;
    last.current = Date.now();
    setOn(true);
  }, [value]);
  return (
    <span className={`${on ? "flash" : ""} ${className ?? ""}`} onAnimationEnd={() => setOn(false)}>
      {children}
    </span>
  );
}
