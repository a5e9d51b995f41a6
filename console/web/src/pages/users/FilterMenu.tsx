import type { User } from "@/api";
import { compareText } from "@/text";
import { userWords } from "@/text/users";
import { FilterButton, FilterGroups } from "@/ui";
import { isLocal, type usePolicyMentions } from "@/users";

const t = userWords.filters;

interface Props {
  users: readonly User[];
  mentions: ReturnType<typeof usePolicyMentions>;
  value: string;
  onChange(value: string): void;
}

export const UserFilterMenu = (props: Props) => (
  <FilterButton>
    <Groups {...props} />
  </FilterButton>
);

function Groups({ users, mentions, value, onChange }: Props) {
  const groups = [...new Set(users.flatMap((user) => mentions?.groups(user).map((m) => m.name) ?? []))];
  const providers = [...new Set(users.filter((user) => !isLocal(user)).map((user) => user.provider.toLowerCase()))];
  return (
    <FilterGroups
      groups={[
        [t.state, ["is:active", "is:idle", "is:empty", "is:unapproved", "is:suspended", "is:held"]],
        [t.role, ["role:admin", "role:operator", "role:read", "role:member"]],
        [t.seen, ["seen:>30d", "seen:>90d"]],
        [t.source, providers.length > 0 ? ["source:local", ...providers.sort().map((name) => `source:${name}`)] : []],
        [t.groups, groups.sort(compareText).slice(0, 30)],
      ]}
      words={t.words}
      value={value}
      onChange={onChange}
    />
  );
}
