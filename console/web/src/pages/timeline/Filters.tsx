import { ListFilter } from "lucide-react";
import { lanes } from "@/activity";
import { printable, text } from "@/text";
import { Button, FilterChip, FilterChipLine, Menu, MenuCheck, MenuGroup } from "@/ui";
import { lanesOf } from "./marks";
import type { TimelineSearch } from "./state";

const t = text.timeline;

interface FilterProps {
  search: TimelineSearch;
  onChange(change: Partial<TimelineSearch>, how?: "push"): void;
}

const verbs = Object.keys(t.verb) as (keyof typeof t.verb)[];

/** Selects which events are shown. The server omits the others. */
export function FilterMenu({ search, onChange }: FilterProps) {
  const shown = lanesOf(search.lane);
  const chosen = search.verb ? search.verb.split(",") : verbs;
  const toggled = <T extends string>(all: readonly T[], on: readonly string[], each: T) => {
    const next = all.filter((one) => (one === each ? !on.includes(one) : on.includes(one)));
    return next.length === all.length ? "" : next.join(",");
  };
  return (
    <Menu
      trigger={
        <Button icon={ListFilter} className="shrink-0">
          {t.filter}
        </Button>
      }
    >
      <MenuGroup label={t.lanes}>
        {lanes.map((lane) => (
          <MenuCheck
            key={lane}
            checked={shown.includes(lane)}
            onChange={() => onChange({ lane: toggled(lanes, shown, lane), kind: "" })}
          >
            {text.activity.lanes[lane]}
          </MenuCheck>
        ))}
      </MenuGroup>
      <MenuGroup label={t.verbs}>
        {verbs.map((verb) => (
          <MenuCheck
            key={verb}
            checked={chosen.includes(verb)}
            onChange={() => onChange({ verb: toggled(verbs, chosen, verb) })}
          >
            {t.verb[verb]}
          </MenuCheck>
        ))}
      </MenuGroup>
    </Menu>
  );
}

/** The active filters, each with a button to remove it. */
export function FilterChips({ search, onChange }: FilterProps) {
  const chips: { words: string; clear: Partial<TimelineSearch> }[] = [];
  if (search.lane)
    chips.push({
      words: lanesOf(search.lane)
        .map((lane) => text.activity.lanes[lane])
        .join(", "),
      clear: { lane: "" },
    });
  if (search.verb)
    chips.push({
      words: verbs
        .filter((verb) => search.verb.split(",").includes(verb))
        .map((verb) => t.verb[verb])
        .join(", "),
      clear: { verb: "" },
    });
  if (search.object || search.kind)
    chips.push({
      words: t.chips.object(printable(search.kind), printable(search.object)),
      clear: { object: "", kind: "" },
    });
  if (search.actor) chips.push({ words: t.chips.actor(printable(search.actor)), clear: { actor: "" } });
  if (chips.length === 0) return null;
  return (
    <FilterChipLine>
      {chips.map(({ words, clear }) => (
        <FilterChip key={words} words={words} onRemove={() => onChange(clear, "push")} />
      ))}
    </FilterChipLine>
  );
}
