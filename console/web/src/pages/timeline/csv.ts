import { type AuditFilter, api, type Change } from "@/api";
import { text } from "@/text";
import type { Column } from "@/ui";
import { downloadCSV } from "@/ui/table/csv";
import { type Told, tell } from "./marks";

const t = text.timeline.csv;
const column = (id: string, title: string, csv: (each: Told) => string): Column<Told> => ({
  id,
  title,
  csv,
  cell: () => null,
});

const columns: Column<Told>[] = [
  column("time", t.time, ({ entry }) => entry.at),
  column("event", t.event, ({ words }) => words.title),
  column("part", t.part, ({ words }) => text.activity.lanes[words.lane]),
  column("actor", t.actor, ({ words }) => words.actor),
  column("address", t.address, ({ entry }) => entry.actor.address),
  column("request", t.request, ({ entry }) => entry.actor.requestId),
  column("kind", t.kind, ({ entry }) => entry.kind),
  column("object", t.object, ({ entry }) => entry.object),
  column("id", t.id, ({ entry }) => entry.id),
];

export const mostExported = 10_000;

/** Writes all events of a filter to a file, not only the visible ones. Returns whether the file is complete. */
export async function exportEvents(filter: AuditFilter, keep: (each: Told) => boolean): Promise<boolean> {
  const all: Change[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await api.get("/api/v1/audit", { query: { ...filter, limit: 1000, cursor } });
    all.push(...page.entries);
    if (!page.next || all.length >= mostExported) {
      downloadCSV("events", columns, all.slice(0, mostExported).map(tell).filter(keep));
      return !page.next;
    }
    cursor = page.next;
  }
}
