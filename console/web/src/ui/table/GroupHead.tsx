import { text } from "@/text";
import type { Group } from "./order";

/** The heading of a group of rows. */
export function GroupHead<T>({ group }: { group: Group<T> }) {
  const total = group.total ?? group.rows.length;
  return (
    <span className="flex w-full min-w-0 items-center gap-2">
      <span className="shrink-0 font-semibold text-ink">{group.title}</span>
      <span className="truncate text-ink-3 tabular-nums">
        {total.toLocaleString("en")}
        {group.note && ` · ${group.note}`}
      </span>
      {total > group.rows.length && (
        <button
          type="button"
          className="h-6 shrink-0 rounded px-1 font-medium text-accent-ink hover:underline"
          onClick={group.onShowAll}
        >
          {text.table.showAll(total)}
        </button>
      )}
    </span>
  );
}
