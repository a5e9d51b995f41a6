import type { Right } from "@/api/session";
import { useCan } from "@/api/session";
import { useConnection } from "@/api/stream/live";
import { text } from "@/text";
import { Button, type ButtonProps } from "./button";
import { Tip } from "./tip";

/** Whether something that writes is offered: not at all without the right, and not now without a connection. */
export function useWrites(right: Right): { offered: boolean; now: boolean } {
  const can = useCan();
  const { name } = useConnection();
  return { offered: can(right), now: name !== "offline" };
}

/** A button for what needs a right. It is not there without it, and says why when there is no connection. */
export function WriteButton({ right, ...rest }: ButtonProps & { right: Right }) {
  const { offered, now } = useWrites(right);
  if (!offered) return null;
  if (now) return <Button {...rest} />;
  return (
    <Tip label={text.common.offlineWrite}>
      <Button {...rest} onClick={undefined} aria-disabled />
    </Tip>
  );
}
