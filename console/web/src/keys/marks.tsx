import { TriangleAlert } from "lucide-react";
import type { PreAuthKey } from "@/api";
import { printable, text } from "@/text";
import { Avatar, Badge, Chips, Mark, Tip } from "@/ui";
import { isLongLived, keyState } from "./facts";

const t = text.keys;

/** The owner of the nodes that join with a key: a user or tags. */
export function KeyOwner({ of: key }: { of: PreAuthKey }) {
  if (key.aclTags.length > 0) return <Chips tags={key.aclTags} />;
  const name = key.user?.name ?? "";
  return (
    <span className="flex min-w-0 items-center gap-2">
      <Avatar name={name} />
      <span className="truncate">{printable(name)}</span>
    </span>
  );
}

export function KeyKind({
  of: key,
  powerful = [],
  now,
}: {
  of: PreAuthKey;
  /** Tags that have wide access in the policy. */
  powerful?: readonly string[];
  now: number;
}) {
  const risky = keyState(key, now) === "usable" && isLongLived(key.reusable, Date.parse(key.expiration), now);
  const strong = key.aclTags.filter((tag) => powerful.includes(tag));
  const warning = t.longLivedPowerful(strong);
  return (
    <span className="flex items-center gap-1">
      <Badge>{key.reusable ? t.kinds.reusable : t.kinds.once}</Badge>
      {key.ephemeral && <Badge>{t.kinds.ephemeral}</Badge>}
      {key.preApproved && <Badge>{t.kinds.preApproved}</Badge>}
      {risky && strong.length > 0 && (
        <Tip label={warning}>
          <TriangleAlert className="size-3.5 shrink-0 text-warn" role="img" aria-label={warning} />
        </Tip>
      )}
    </span>
  );
}

export function KeyStateMark({ of: key, now, words = true }: { of: PreAuthKey; now: number; words?: boolean }) {
  const state = keyState(key, now);
  return (
    <span className="flex items-center gap-2">
      <Mark state={state === "usable" ? "on" : "off"} label={words ? undefined : t.state[state]} />
      {words && <span className={state === "usable" ? undefined : "text-ink-2"}>{t.state[state]}</span>}
    </span>
  );
}
