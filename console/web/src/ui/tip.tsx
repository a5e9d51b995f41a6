import { Tooltip } from "radix-ui";
import type { ReactNode } from "react";

/** Words about a control, on hover and on focus. They repeat or add; nothing is said here alone that must be known. */
export function Tip({ label, children }: { label: ReactNode; children: ReactNode }) {
  if (!label) return children;
  return (
    <Tooltip.Root>
      <Tooltip.Trigger asChild>{children}</Tooltip.Trigger>
      <Tooltip.Portal>
        <Tooltip.Content
          sideOffset={6}
          collisionPadding={8}
          className="z-50 max-w-80 rounded-md bg-ink px-2 py-1 text-12 text-canvas shadow-menu"
        >
          {label}
        </Tooltip.Content>
      </Tooltip.Portal>
    </Tooltip.Root>
  );
}

export const TipProvider = ({ children }: { children: ReactNode }) => (
  <Tooltip.Provider delayDuration={400} skipDelayDuration={200}>
    {children}
  </Tooltip.Provider>
);
