import type { User } from "@/api";
import { userWords } from "@/text/users";
import { Badge } from "@/ui";
import { isHeld, isSuspended, needsApproval } from "./facts";

/** Why a user has no access at the moment, or may lose it. */
export function UserBadges({ user }: { user: User }) {
  return (
    <>
      {isSuspended(user) && (
        <Badge tone="bad" className="shrink-0">
          {userWords.badges.suspended}
        </Badge>
      )}
      {isHeld(user) && (
        <Badge tone="warn" className="shrink-0">
          {userWords.badges.held}
        </Badge>
      )}
      {needsApproval(user) && (
        <Badge tone="warn" className="shrink-0">
          {userWords.badges.approval}
        </Badge>
      )}
    </>
  );
}
