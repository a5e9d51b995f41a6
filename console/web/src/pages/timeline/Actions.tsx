import { Download, Link2 } from "lucide-react";
import { text } from "@/text";
import { announce, Button, copyText, useStatus } from "@/ui";
import { exportEvents, mostExported } from "./csv";
import type { Told } from "./marks";
import type { useTimelineEvents } from "./state";

const t = text.timeline;

/** Copies a link to what is shown, or exports it as a file. */
export function Actions({
  events,
  fits,
  from,
  to,
}: {
  events: ReturnType<typeof useTimelineEvents>;
  /** Whether an event matches the filter line. */
  fits(told: Told): boolean;
  from: number;
  to: number;
}) {
  const status = useStatus();
  const copyLink = async () => {
    // Use exact times, so that people who follow the link see the same period and not the latest one.
    const url = new URL(location.href);
    url.searchParams.set("from", new Date(from).toISOString());
    url.searchParams.set("to", new Date(to).toISOString());
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
  return (
    <>
      <Button icon={Link2} onClick={() => void copyLink()}>
        {t.copyLink}
      </Button>
      <Button icon={Download} onClick={() => void write()} className="max-md:hidden">
        {t.export}
      </Button>
    </>
  );
}
