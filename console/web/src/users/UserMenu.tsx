import { useNavigate } from "@tanstack/react-router";
import {
  CircleCheck,
  KeyRound,
  MailPlus,
  PanelRight,
  Pencil,
  Server,
  Trash2,
  UserCog,
  UserPen,
  UserRoundCheck,
  UserRoundX,
} from "lucide-react";
import { type User, useCan } from "@/api";
import { printable } from "@/text";
import { userWords } from "@/text/users";
import { MenuItem, MenuLine, RowMenu, useWrites } from "@/ui";
import { useUserActions } from "./actions";
import { isHeld, isLocal, isSuspended, needsApproval } from "./facts";
import { useAccessWrites, useAdminWrites } from "./writes";

/** The actions on one user. */
export function UserMenu({ user, here, onDeleted }: { user: User; here?: boolean; onDeleted?(): void }) {
  const t = userWords.actions;
  const navigate = useNavigate();
  const start = useUserActions();
  const can = useCan();
  const users = useWrites("users:write");
  const admin = useAdminWrites();
  const access = useAccessWrites();
  const keys = useWrites("preauthkeys:write");
  const nodes = useWrites("nodes:write");
  return (
    <RowMenu name={printable(user.name)}>
      {!here && (
        <MenuItem icon={PanelRight} onSelect={() => void navigate({ to: "/users/$id", params: { id: user.id } })}>
          {t.open}
        </MenuItem>
      )}
      {can("nodes:read") && (
        <MenuItem
          icon={Server}
          onSelect={() => void navigate({ to: "/nodes", search: { q: `user:${user.name.toLowerCase()}` } as never })}
        >
          {t.nodes}
        </MenuItem>
      )}
      {nodes.offered && user.nodeCount > 0 && (
        <MenuItem icon={UserPen} why={nodes.why} onSelect={() => start({ name: "move", user })}>
          {t.move}
        </MenuItem>
      )}
      {keys.offered && (
        <MenuItem icon={KeyRound} why={keys.why} onSelect={() => start({ name: "key", user })}>
          {t.key}
        </MenuItem>
      )}
      {users.offered && (
        <>
          <MenuLine />
          {needsApproval(user) && admin.offered && (
            <MenuItem icon={CircleCheck} why={admin.why} onSelect={() => start({ name: "approve", user })}>
              {t.approve}
            </MenuItem>
          )}
          {isLocal(user) && (
            <MenuItem icon={Pencil} keyHint="e" why={users.why} onSelect={() => start({ name: "rename", user })}>
              {t.rename}
            </MenuItem>
          )}
          {access.offered && !needsApproval(user) && (
            <MenuItem icon={UserCog} why={access.why} onSelect={() => start({ name: "role", user })}>
              {t.role}
            </MenuItem>
          )}
          {access.offered && isLocal(user) && (
            <MenuItem icon={MailPlus} why={access.why} onSelect={() => start({ name: "invite", user })}>
              {t.invite}
            </MenuItem>
          )}
          {isHeld(user) && (
            <MenuItem
              icon={UserRoundCheck}
              why={users.why}
              onSelect={() => start({ name: "decide", what: "keep", users: [user] })}
            >
              {t.keep}
            </MenuItem>
          )}
          {isSuspended(user) ? (
            <MenuItem icon={UserRoundCheck} why={users.why} onSelect={() => start({ name: "restore", user })}>
              {t.restore}
            </MenuItem>
          ) : (
            <MenuItem icon={UserRoundX} why={users.why} onSelect={() => start({ name: "suspend", user })}>
              {t.suspend}
            </MenuItem>
          )}
          <MenuItem
            icon={Trash2}
            danger
            keyHint="Del"
            why={users.why}
            onSelect={() => start({ name: "delete", users: [user], onDone: onDeleted })}
          >
            {t.delete}
          </MenuItem>
        </>
      )}
    </RowMenu>
  );
}
