import { clsx } from "clsx";
import type { ReactNode } from "react";
import { text } from "@/text";
import { Checkbox } from "../field";
import { isForRow, isTapOnLink, notePress } from "./click";
import { GroupHead } from "./GroupHead";
import type { DataTableProps, Visible } from "./props";

export const phoneHead = 37;

/** The rows on a phone. */
export function PhoneList<T>({
  label,
  visible,
  height,
  boxes,
  selected,
  onToggle,
  onOpen,
  rowName,
  phone,
}: Pick<DataTableProps<T>, "label" | "selected" | "onOpen" | "rowName" | "phone"> & {
  visible: Visible<T>;
  height: number;
  /** Whether rows can be selected now, by a tap. */
  boxes: boolean;
  onToggle(id: string, range: boolean): void;
}) {
  return (
    <ul aria-label={label}>
      {visible.top > 0 && <li aria-hidden style={{ height: visible.top }} />}
      {visible.rows.map(({ entry }) =>
        "head" in entry ? (
          <li
            key={entry.id}
            className="flex items-center border-b border-line bg-canvas px-4 text-12"
            style={{ height: phoneHead }}
          >
            <GroupHead group={entry.head} />
          </li>
        ) : (
          <PhoneItem
            key={entry.id}
            name={rowName(entry.row)}
            height={height}
            boxes={boxes}
            selected={selected?.has(entry.id) ?? false}
            onToggle={() => onToggle(entry.id, false)}
            onOpen={() => onOpen?.(entry.row)}
          >
            {phone(entry.row)}
          </PhoneItem>
        ),
      )}
      {visible.bottom > 0 && <li aria-hidden style={{ height: visible.bottom }} />}
    </ul>
  );
}

function PhoneItem({
  name,
  height,
  boxes,
  selected,
  onToggle,
  onOpen,
  children,
}: {
  name: string;
  height: number;
  boxes: boolean;
  selected: boolean;
  onToggle(): void;
  onOpen(): void;
  children: ReactNode;
}) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: its content opens it by keyboard
    <li
      onPointerDown={notePress}
      onClickCapture={(event) => {
        // The name is a link as wide as the row: in selection mode, a tap on it selects the row too.
        if (!boxes || !isTapOnLink(event)) return;
        event.preventDefault();
        event.stopPropagation();
        onToggle();
      }}
      onClick={(event) => {
        if (!isForRow(event)) return;
        if (boxes) onToggle();
        else onOpen();
      }}
      className={clsx(
        "flex items-center gap-3 border-b border-hair px-4",
        boxes && selected && "bg-picked shadow-[inset_2px_0_0_var(--accent)]",
      )}
      style={{ height }}
    >
      {boxes && <Checkbox hideLabel label={text.table.select(name)} checked={selected} onChange={onToggle} />}
      {children}
    </li>
  );
}
