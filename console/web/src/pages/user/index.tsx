/** One user: nodes, keys, groups. */
import { useParams } from "@tanstack/react-router";
import { UserRound } from "lucide-react";
import { useUsers } from "@/api";
import { printable, text } from "@/text";
import { Empty, Page } from "@/ui";

export function UserPage() {
  const { id } = useParams({ from: "/users/$id" });
  const { data } = useUsers();
  const name = data?.items.find((user) => user.id === id)?.name;
  return (
    <Page title={name ? printable(name) : text.users.userTitle}>
      <Empty icon={UserRound} title={text.users.userTitle} />
    </Page>
  );
}
