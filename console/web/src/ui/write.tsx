import type { Right } from "@/api/session";
import { useCan } from "@/api/session";
import { useConnection } from "@/api/stream/live";
import { text } from "@/text";
import { Button, type ButtonProps } from "./button";

/**
 * Whether a control that writes is offered: hidden without permission, and disabled without a connection. A disabled
 * control takes `why` and shows it.
 */
export function useWrites(right: Right): { offered: boolean; now: boolean; why: string } {
  const can = useCan();
  const { name } = useConnection();
  const now = name !== "offline";
  return { offered: can(right), now, why: now ? "" : text.common.offlineWrite };
}

/** A button that requires a permission: hidden without it, and disabled with a reason if there is no connection. */
export function WriteButton({ right, ...rest }: ButtonProps & { right: Right }) {
  const { offered, why } = useWrites(right);
  return offered && <Button {...rest} why={why} />;
}
