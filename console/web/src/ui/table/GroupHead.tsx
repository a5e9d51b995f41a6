import type { Group } from "./order";

/** The heading of a group of rows. */
export function GroupHead<T>({ group }: { group: Group<T> }) {
  return (
    <span className="flex w-full min-w-0 items-center gap-2">
      <span className="shrink-0 font-semibold text-ink">{group.title}</span>
      <span className="truncate text-ink-3 tabular-nums">
        {group.rows.length.toLocaleString("en")}
        {group.note && ` · ${group.note}`}
      </span>
    </span>
  );
}
