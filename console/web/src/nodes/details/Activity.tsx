import { ActivityList, PresenceBand } from "@/activity";
import type { Node } from "@/api";
import { oneOf, useSearchState } from "@/router/search";
import { text } from "@/text";
import { Choices, useNow } from "@/ui";
import { Section } from "./parts";

const t = text.node.activity;
const hours = { "24h": 24, "7d": 7 * 24, "30d": 30 * 24 };

/** When a node was online, and what was changed on it. */
export function Activity({ node }: { node: Node }) {
  const [search, setSearch] = useSearchState({ range: "24h" });
  const now = useNow();
  const range = oneOf<keyof typeof hours>(search.range, hours, "24h");
  const length = hours[range];
  return (
    <div className="space-y-4">
      <Section
        title={t.presence}
        action={
          <Choices<string>
            label={t.range}
            hideLabel
            choices={t.ranges}
            value={range}
            onChange={(range) => setSearch({ range })}
          />
        }
      >
        {/* A closed laptop is not an outage. */}
        <PresenceBand nodeId={node.id} from={now - length * 3600e3} server={node.tags.length > 0} />
      </Section>
      <Section title={t.events}>
        <ActivityList filter={{ kind: "node", object: node.id }} limit={20} more />
      </Section>
    </div>
  );
}
