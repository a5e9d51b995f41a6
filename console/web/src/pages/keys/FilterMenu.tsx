import type { PreAuthKey } from "@/api";
import { termsOf } from "@/filter";
import { compareText, text } from "@/text";
import { FilterButton, FilterGroups } from "@/ui";

const t = text.keys.filters;

interface Props {
  keys: readonly PreAuthKey[];
  value: string;
  onChange(value: string): void;
}

export const KeyFilterMenu = (props: Props) => (
  <FilterButton>
    <Groups {...props} />
  </FilterButton>
);

function Groups({ keys, value, onChange }: Props) {
  const tags = keys.flatMap((key) => key.aclTags.map((tag) => tag.replace(/^tag:/, "")));
  const owners = keys.flatMap((key) => (key.user ? [key.user.name] : []));
  return (
    <FilterGroups
      groups={[
        [t.kind, ["is:reusable", "is:ephemeral", "is:preapproved"]],
        [t.state, ["is:usable", "is:used", "is:expired"]],
      ]}
      more={[
        [t.tags, termsOf("tag", tags.sort(compareText))],
        [t.owner, termsOf("user", owners.sort(compareText))],
      ]}
      words={t.words}
      value={value}
      onChange={onChange}
    />
  );
}
