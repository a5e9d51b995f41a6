import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, type FailedEvent, keys } from "@/api";
import { printable } from "@/text";
import { webhooksPage } from "@/text/settings";
import { Button, ColumnHead, ErrorState, LoadingLines, Time, useStatus } from "@/ui";
import { failedQuery } from "./queries";

const t = webhooksPage.deliveries;

/** The events that a receiver did not accept, each with a button to resend it. */
export function Failed({ webhookId, maySend, why }: { webhookId: string; maySend: boolean; why: string }) {
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(
    failedQuery(webhookId),
  );
  const { sending, send } = useRedeliver(webhookId);
  if (error && !data) return <ErrorState title={t.failed} error={error} onRetry={() => void refetch()} />;
  if (!data) return <LoadingLines widths={["w-64", "w-48"]} className="space-y-4 py-3" />;
  const events = data.pages.flatMap((page) => page.events);
  if (events.length === 0) return <p className="py-2 text-ink-2">{t.none}</p>;
  const busy = sending.size > 0;
  return (
    <div className="space-y-2">
      <p className="text-12 text-ink-2">{t.note}</p>
      <div className="overflow-x-auto">
        <table className="w-full min-w-[520px] text-13" aria-label={t.title}>
          <thead className="text-left text-12 text-ink-2">
            <tr>
              <ColumnHead className="h-8 border-b border-line pr-3">{t.event}</ColumnHead>
              <ColumnHead className="h-8 border-b border-line pr-3">{t.at}</ColumnHead>
              <ColumnHead className="h-8 border-b border-line pr-3">{t.attempts}</ColumnHead>
              <ColumnHead className="h-8 border-b border-line pr-3">{t.answer}</ColumnHead>
              {maySend && <td className="h-8 border-b border-line" />}
            </tr>
          </thead>
          <tbody>
            {events.map((event) => (
              <tr key={event.id} className="h-10">
                <td className="border-b border-hair pr-3 font-mono text-12">
                  {printable(event.event)} <span className="text-ink-3">{printable(event.eventId)}</span>
                </td>
                <td className="border-b border-hair pr-3 whitespace-nowrap">
                  <Time at={event.at} />
                </td>
                <td className="border-b border-hair pr-3 tabular-nums">{event.attempts}</td>
                <td className="border-b border-hair pr-3 break-words">{printable(event.answer)}</td>
                {maySend && (
                  <td className="border-b border-hair text-right">
                    <Button
                      aria-label={t.redeliverOne(printable(event.event), printable(event.eventId))}
                      busy={sending.has(event.id)}
                      disabled={busy}
                      why={why}
                      onClick={() => void send([event])}
                    >
                      {t.redeliver}
                    </Button>
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div className="flex flex-wrap gap-2">
        {maySend && events.length > 1 && (
          <Button disabled={busy} why={why} onClick={() => void send(events)}>
            {t.redeliverAll(events.length)}
          </Button>
        )}
        {hasNextPage && (
          <Button look="ghost" busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            {t.more}
          </Button>
        )}
      </div>
    </div>
  );
}

/** Resends events, one after the other: the server refuses two at once for the same receiver. */
function useRedeliver(webhookId: string) {
  const client = useQueryClient();
  const status = useStatus();
  const [sending, setSending] = useState<ReadonlySet<string>>(new Set());
  const send = async (events: readonly FailedEvent[]) => {
    setSending(new Set(events.map(({ id }) => id)));
    let problem = "";
    let done = 0;
    for (const { id } of events) {
      try {
        const { data } = await api.call("post", "/api/v1/webhooks/{webhookId}/failed/{failedId}/redeliver", {
          params: { webhookId, failedId: id },
        });
        if (data.delivered) done++;
        else problem = data.problem;
      } catch (error) {
        problem = error instanceof Error ? error.message : String(error);
      }
    }
    const bad = events.length - done;
    if (done > 0) status.done(t.done(done));
    if (bad > 0) status.failed(t.notDone(bad), problem);
    await client.invalidateQueries({ queryKey: keys.webhooks });
    setSending(new Set());
  };
  return { sending, send };
}
