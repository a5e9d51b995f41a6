/** Changes and presence on a common time axis. */
import { type ComponentProps, useCallback, useMemo } from "react";
import { EventDetails, lanes, useKeyComments } from "@/activity";
import type { AuditFilter } from "@/api";
import { matches, useFilter } from "@/filter";
import { text } from "@/text";
import { FilterLine, FoldButton, PageHead, SidePanel, useFold, useMedia, usePageTitle, useShortcuts } from "@/ui";
import { Actions } from "./Actions";
import { Bands } from "./Bands";
import { EventList } from "./EventList";
import { FilterChips, FilterMenu } from "./Filters";
import { eventFilter, eventFilterFields, type Told } from "./marks";
import { PresenceTable } from "./PresenceTable";
import { RangeBar } from "./RangeBar";
import { useAsked, useOpenEvent, usePresenceNodes, useShown, useTimelineEvents, useTimelineSearch } from "./state";
import { useMoves } from "./useMoves";

const t = text.timeline;

export function TimelinePage() {
  const [search, setSearch] = useTimelineSearch();
  const asked = useAsked(search);
  const events = useTimelineEvents(search, asked);
  const { period, end, live, name } = useShown(asked, search, events.told[0]?.at ?? 0);
  const { nodes, usual } = usePresenceNodes(search.nodes);
  const open = useOpenEvent(search.event, events.told);
  const commit = useCallback((q: string) => setSearch({ q }), [setSearch]);
  const { typed, setTyped, terms } = useFilter(search.q, commit, eventFilterFields);
  const commentOf = useKeyComments();
  const fits = useMemo(() => {
    const filter = eventFilter(commentOf);
    return (each: Told) => matches(each, terms, filter);
  }, [commentOf, terms]);
  const told = useMemo(
    () => events.told.filter((each) => each.at >= period.from && each.at <= end && fits(each)),
    [events.told, period.from, end, fits],
  );
  const compact = useMedia("(max-width: 767px)");
  const { showPeriod, showRange, shift, openEvent, openMark } = useMoves(search, setSearch, period.from, end);
  const marker = search.at ? Date.parse(search.at) : Number.NaN;

  usePageTitle(t.title, events.data && t.eventsOf(told.length));
  useTimelineKeys(shift, () => showRange(name || "24h"));

  const onlyLane = events.lanes.length === 1 ? (events.lanes[0] ?? null) : null;
  const filtered = Boolean(
    search.lane || search.verb || search.actor || search.object || search.kind || terms.length > 0,
  );
  return (
    <div className="flex h-full min-h-0">
      <div className="flex h-full min-w-0 flex-1 flex-col overflow-y-auto">
        <PageHead
          title={t.title}
          below={
            <div className="flex flex-wrap items-center gap-x-3 gap-y-2 pt-3 pb-3">
              <RangeBar
                period={period}
                end={end}
                range={name}
                onRange={showRange}
                onPeriod={showPeriod}
                onShift={shift}
              />
              <span className="ml-auto flex min-w-0 items-center gap-2 max-md:w-full">
                <FilterLine label={t.find} placeholder={t.findHint} value={typed} onChange={setTyped} />
                <FilterMenu search={search} onChange={setSearch} />
              </span>
            </div>
          }
        >
          <Actions events={events} fits={fits} from={period.from} to={end} />
        </PageHead>
        <Bands
          from={period.from}
          to={end}
          live={live}
          told={told}
          knownFrom={events.hasNextPage ? (events.told.at(-1)?.at ?? end) : period.from}
          lanes={lanes}
          onlyLane={onlyLane}
          onLane={(lane) => setSearch({ lane: onlyLane === lane ? "" : lane }, "push")}
          nodes={nodes}
          usual={usual}
          onNodes={(ids) => setSearch({ nodes: ids?.join(",") ?? "" })}
          marker={Number.isNaN(marker) ? null : marker}
          onMarker={(at) => setSearch({ at: at === null ? "" : new Date(at).toISOString() })}
          onMark={openMark}
          onPeriod={(from, to) => showPeriod({ from, to })}
          compact={compact}
        />
        <PresenceFigures nodes={nodes} from={period.from} to={end} live={live} />
        <FilterChips search={search} onChange={setSearch} />
        <section aria-label={t.events} className="min-h-0 flex-1">
          <EventList
            events={events}
            told={told}
            open={search.event}
            onOpen={openEvent}
            filtered={filtered}
            onWider={name !== "30d" && !filtered ? () => showRange("30d") : undefined}
          />
        </section>
      </div>
      {open && (
        <SidePanel title={text.activity.details.title} onClose={() => setSearch({ event: "" })}>
          <EventDetails
            entry={open.entry}
            onFilter={({ kind = "", object = "", actor = "" }: AuditFilter) =>
              setSearch({ kind, object, actor, lane: "" }, "push")
            }
          />
        </SidePanel>
      )}
    </div>
  );
}

function PresenceFigures(props: ComponentProps<typeof PresenceTable>) {
  const fold = useFold();
  if (props.nodes.length === 0) return null;
  return (
    <div className="shrink-0 border-b border-line bg-surface px-6 pb-2 max-md:px-4">
      <FoldButton fold={fold} small className="-ml-0.5 h-7 text-12">
        {t.presenceTable}
      </FoldButton>
      {fold.open && (
        <div id={fold.id}>
          <PresenceTable {...props} />
        </div>
      )}
    </div>
  );
}

function useTimelineKeys(shift: (direction: 1 | -1) => void, backToNow: () => void) {
  const group = text.shell.groups.page;
  const go = (step: 1 | -1) => {
    const all = [...document.querySelectorAll<HTMLElement>("[data-event]")];
    const at = all.indexOf(document.activeElement as HTMLElement);
    const next = at < 0 ? all[0] : all[at + step];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  };
  useShortcuts([
    { keys: "[", label: t.keys.earlier, group, run: () => shift(-1) },
    { keys: "]", label: t.keys.later, group, run: () => shift(1) },
    { keys: "0", label: t.keys.now, group, run: backToNow },
    { keys: "j", label: t.keys.next, group, run: () => go(1) },
    { keys: "k", label: t.keys.previous, group, run: () => go(-1) },
  ]);
}
