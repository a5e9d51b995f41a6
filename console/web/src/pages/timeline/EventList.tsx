import { Activity } from "lucide-react";
import { useState } from "react";
import { text } from "@/text";
import { Button, Delayed, Empty, ErrorState, Skeleton } from "@/ui";
import { EventTable } from "./EventTable";
import type { Told } from "./marks";
import type { useTimelineEvents } from "./state";

const t = text.timeline;

/** How many rows are shown at first, and added on request, because many rows make the page slow. */
const rowStep = 100;

/** The events as a table, or the reason why there are none. */
export function EventList({
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
