/** Changes and presence on one axis of time. */
import { clsx } from "clsx";
import { Activity, ChevronRight, Download, Link2 } from "lucide-react";
import { useCallback, useId, useMemo, useState } from "react";
import { EventDetails, lanes, useKeyComments } from "@/activity";
import type { AuditFilter } from "@/api";
import { matches, useFilter } from "@/filter";
import { text } from "@/text";
import {
  announce,
  Button,
  copyText,
  Delayed,
  Empty,
  ErrorState,
  FilterLine,
  PageHead,
  SidePanel,
  Skeleton,
  useMedia,
  usePageTitle,
  useShortcuts,
  useStatus,
} from "@/ui";
import { Bands } from "./Bands";
import { exportEvents, mostExported } from "./csv";
import { EventTable } from "./EventTable";
import { FilterChips, FilterMenu } from "./Filters";
import { type EventMark, eventFilter, eventFilterFields, type Told } from "./marks";
import { PresenceTable } from "./PresenceTable";
import { RangeBar } from "./RangeBar";
import { around, lengths, type Period, shifted } from "./range";
import { useAsked, useOpenEvent, usePresenceNodes, useShown, useTimelineEvents, useTimelineSearch } from "./state";

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
  const status = useStatus();
  const compact = useMedia("(max-width: 767px)");
  const [figures, setFigures] = useState(false);
  const figuresId = useId();

  const showPeriod = useCallback(
    ({ from, to }: Period) =>
      setSearch({ from: new Date(from).toISOString(), to: to === null ? "" : new Date(to).toISOString() }, "push"),
    [setSearch],
  );
  const showRange = (range: string) => setSearch({ range, from: "", to: "" }, "push");
  const shift = (direction: 1 | -1) => {
    const next = shifted(period.from, end, direction, Date.now());
    if (next) return showPeriod(next);
    // Beyond now there is only now.
    const length = end - period.from;
    const same = Object.entries(lengths).find(([, each]) => Math.abs(each - length) < 1000);
    if (same) showRange(same[0]);
    else showPeriod({ from: Date.now() - length, to: null });
  };
  const openEvent = useCallback(
    ({ entry }: Told) => setSearch({ event: entry.id, at: entry.at }, search.event ? "replace" : "push"),
    [setSearch, search.event],
  );
  const openMark = useCallback(
    (mark: EventMark) => {
      const [first] = mark.told;
      const last = mark.told.at(-1);
      if (!first || !last) return;
      if (mark.told.length === 1) openEvent(first);
      else showPeriod(around(last.at, first.at, Date.now()));
    },
    [openEvent, showPeriod],
  );
  const marker = search.at ? Date.parse(search.at) : Number.NaN;

  usePageTitle(t.title, events.data && t.eventsOf(told.length));
  useTimelineKeys(shift, () => showRange(name || "24h"));

  const copyLink = async () => {
    // To the moment, so that who follows it sees the same and not what is last then.
    const url = new URL(location.href);
    url.searchParams.set("from", new Date(period.from).toISOString());
    url.searchParams.set("to", new Date(end).toISOString());
    url.searchParams.delete("range");
    if (await copyText(url.href)) status.done(t.linkCopied);
    else announce(text.common.copyByHand);
  };
  const write = async () => {
    try {
      const all = await exportEvents(events.filter, (each) => events.lanes.includes(each.words.lane) && fits(each));
      if (!all) status.done(t.exportCut(mostExported.toLocaleString("en")));
    } catch (error) {
      status.failed(t.exportFailed, error);
    }
  };
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
          <Button icon={Link2} onClick={() => void copyLink()}>
            {t.copyLink}
          </Button>
          <Button icon={Download} onClick={() => void write()} className="max-md:hidden">
            {t.export}
          </Button>
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
        {nodes.length > 0 && (
          <div className="shrink-0 border-b border-line bg-surface px-6 pb-2 max-md:px-4">
            <button
              type="button"
              aria-expanded={figures}
              aria-controls={figures ? figuresId : undefined}
              onClick={() => setFigures(!figures)}
              className="-ml-0.5 flex h-7 items-center gap-1 text-12 text-ink-2 hover:text-ink"
            >
              <ChevronRight
                className={clsx("size-3.5 transition-transform duration-100", figures && "rotate-90")}
                aria-hidden
              />
              {t.presenceTable}
            </button>
            {figures && (
              <div id={figuresId}>
                <PresenceTable nodes={nodes} from={period.from} to={end} live={live} />
              </div>
            )}
          </div>
        )}
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

/** Many rows make a page slow, and nobody reads them all. */
const rowStep = 100;

function EventList({
  events,
  told,
  open,
  onOpen,
  filtered,
  onWider,
}: {
  events: ReturnType<typeof useTimelineEvents>;
  told: readonly Told[];
  open: string;
  onOpen(entry: Told): void;
  filtered: boolean;
  onWider?(): void;
}) {
  const [rows, setRows] = useState(rowStep);
  if (events.error && !events.data)
    return <ErrorState title={t.failed} error={events.error} onRetry={() => void events.refetch()} />;
  if (!events.data)
    return (
      <Delayed>
        <div className="space-y-5 px-6 py-4" aria-hidden>
          {["w-3/5", "w-2/5", "w-1/2", "w-2/3", "w-1/3"].map((width) => (
            <Skeleton key={width} className={width} />
          ))}
        </div>
      </Delayed>
    );
  if (told.length === 0 && !events.hasNextPage)
    return (
      <Empty
        icon={Activity}
        title={filtered ? t.emptyFilteredTitle : t.emptyTitle}
        action={onWider && <Button onClick={onWider}>{t.show30d}</Button>}
      >
        {filtered ? t.emptyFiltered : t.emptyBody}
      </Empty>
    );
  const older = () => {
    setRows(rows + rowStep);
    if (told.length <= rows + rowStep && events.hasNextPage) void events.fetchNextPage();
  };
  return (
    <>
      <EventTable told={told.slice(0, rows)} open={open} onOpen={onOpen} />
      {(events.hasNextPage || told.length > rows) && (
        <div className="px-6 py-4 max-md:px-4">
          <Button busy={events.isFetchingNextPage} onClick={older}>
            {t.older}
          </Button>
        </div>
      )}
    </>
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
