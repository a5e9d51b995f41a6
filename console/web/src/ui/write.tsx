import type { Right } from "@/api/session";
import { useCan } from "@/api/session";
import { useConnection } from "@/api/stream/live";
import { text } from "@/text";
import { Button, type ButtonProps } from "./button";

/**
 * Whether something that writes is offered: not at all without the right, and not now without a connection. What is not
 * now takes `why`, and says it.
 */
export function useWrites(right: Right): { offered: boolean; now: boolean; why: string } {
  const can = useCan();
  const { name } = useConnection();
  const now = name !== "offline";
  return { offered: can(right), now, why: now ? "" : text.common.offlineWrite };
}

/** A button for what needs a right. It is not there without it, and says why when there is no connection. */
export function WriteButton({ right, ...rest }: ButtonProps & { right: Right }) {
  const { offered, why } = useWrites(right);
  return offered && <Button {...rest} why={why} />;
}
