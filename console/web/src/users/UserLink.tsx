import { Link } from "@tanstack/react-router";
import { clsx } from "clsx";
import { useCan } from "@/api";
import { printable } from "@/text";
import { Avatar } from "@/ui";

/** A user's name, linked to the user's page. Without an ID, or without permission to see users, only the name. */
export function UserLink({ id, name, className }: { id?: string; name: string; className?: string }) {
  const can = useCan();
  return (
    <span className={clsx("inline-flex min-w-0 items-center gap-2", className)}>
      <Avatar name={name} />
      {id && can("users:read") ? (
        <Link to="/users/$id" params={{ id }} className="truncate hover:underline">
          {printable(name)}
        </Link>
      ) : (
        <span className="truncate">{printable(name)}</span>
      )}
    </span>
  );
}
