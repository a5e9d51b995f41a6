// biome-ignore-all lint/a11y/useSemanticElements: a table element cannot be virtualized
// biome-ignore-all lint/a11y/useFocusableInteractive: only the cells of a grid take the focus
/** The headings and cells of the matrix. */
import { clsx } from "clsx";
import { memo, useEffect, useRef } from "react";
import { type AccessRow, ChangeSign, changeOf, shortPorts, splitName } from "@/access";
import type { AccessCell, AccessPrincipal } from "@/api";
import { printable } from "@/text";
import { accessMap, accessView } from "@/text/access";
import { combined } from "./tidyMap";

const t = accessMap;
/** The sizes of the matrix, in pixels. */
export const size = { row: 44, column: 96, side: 192, head: 52 };

export interface Place {
  row: number;
  column: number;
}

const countWords = ({ kind, nodes }: AccessPrincipal) =>
  kind === combined ? "" : `, ${kind === "route" || kind === "internet" ? t.routers(nodes) : t.nodes(nodes)}`;

export function ColumnHead({ principal, index, left }: { principal: AccessPrincipal; index: number; left: number }) {
  const { kind, name } = splitName(principal);
  return (
    <div
      role="columnheader"
      aria-colindex={index + 2}
      aria-label={`${printable(principal.name)}${countWords(principal)}`}
      title={printable(principal.name)}
      className="absolute top-0 bottom-0 flex flex-col justify-end overflow-hidden px-2 pb-2 text-left"
      style={{ left, width: size.column }}
    >
      <span className="truncate font-mono text-12 font-medium">{printable(name)}</span>
      <span className="truncate text-11 text-ink-3">{t.kinds[principal.kind] ?? kind}</span>
    </div>
  );
}

export const RowHead = memo(function RowHead({ principal }: { principal: AccessPrincipal }) {
  const { kind, name } = splitName(principal);
  return (
    <div
      role="rowheader"
      aria-colindex={1}
      aria-label={`${printable(principal.name)}${countWords(principal)}`}
      className="sticky left-0 z-10 flex h-full items-center gap-2 border-r border-b border-line border-b-hair bg-surface pr-3 pl-6"
      style={{ width: size.side }}
    >
      <span className="min-w-0 flex-1">
        <span className="block truncate font-mono text-12 font-medium" title={printable(principal.name)}>
          {printable(name)}
        </span>
        <span className="block truncate text-11 text-ink-3">{t.kinds[principal.kind] ?? kind}</span>
      </span>
      {principal.kind !== "node" && principal.kind !== combined && (
        <span className="text-11 text-ink-3 tabular-nums">{principal.nodes.toLocaleString("en")}</span>
      )}
    </div>
  );
});

/** How a draft changes a cell. */
const changeWords = ({ gained, lost }: AccessCell) =>
  [
    gained.length > 0 && `${t.draft.gained} ${gained.join(", ")}`,
    lost.length > 0 && `${t.draft.lost} ${lost.join(", ")}`,
  ]
    .filter(Boolean)
    .join(", ");

const looks = {
  gained: "border border-ok bg-ok-soft",
  lost: "border border-dashed border-bad bg-bad-soft",
  changed: "border border-line-strong bg-warn-soft",
  "": "",
};

export const Cell = memo(function Cell({
  id,
  row,
  column,
  left,
  from,
  to,
  found,
  active,
  open,
  onActive,
  onOpen,
}: {
  id: string;
  row: number;
  column: number;
  left: number;
  from: AccessPrincipal;
  to: AccessPrincipal;
  found: AccessRow | undefined;
  active: boolean;
  open: boolean;
  onActive(at: Place): void;
  onOpen(from: AccessPrincipal, to: AccessPrincipal): void;
}) {
  const shown = useRef<HTMLDivElement>(null);
  // The panel next to the grid takes space from it, so keep the cell in view.
  useEffect(() => {
    if (open) shown.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [open]);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the grid handles the keys
    <div
      ref={shown}
      id={id}
      role="gridcell"
      aria-colindex={column + 2}
      aria-selected={open}
      tabIndex={active ? 0 : -1}
      onFocus={() => onActive({ row, column })}
      onClick={() => onOpen(from, to)}
      className={clsx(
        "absolute top-0 bottom-0 cursor-pointer border-r border-b border-hair p-0.5 -outline-offset-2",
        open && !found && "bg-sunken ring-2 ring-accent ring-inset",
      )}
      style={{ left, width: size.column }}
    >
      <span className="sr-only">{t.matrix.cell(printable(from.name), printable(to.name))}</span>
      {found ? <Found row={found} open={open} /> : <span className="sr-only">{t.noAccess}</span>}
    </div>
  );
});

function Found({ row, open }: { row: AccessRow; open: boolean }) {
  const { cell } = row;
  const change = changeOf(cell);
  const whole = cell.pairs === cell.of;
  return (
    <span
      className={clsx(
        "flex h-full flex-col justify-center overflow-hidden rounded px-1.5",
        looks[change] || (whole ? "bg-accent-soft" : "bg-chip"),
        open && "ring-2 ring-accent",
      )}
    >
      <span className="flex items-center gap-0.5">
        <ChangeSign change={change} />
        <span className={clsx("truncate font-mono text-11", whole && !change ? "text-accent-ink" : "text-ink")}>
          {shortPorts(change === "lost" && cell.pairs === 0 ? cell.lost : cell.ports)}
        </span>
      </span>
      <span className="truncate text-11 text-ink-2 tabular-nums">{cell.own ? t.own : <Amount cell={cell} />}</span>
      {change && <span className="sr-only">{changeWords(cell)}</span>}
    </span>
  );
}

const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** The percentage of pairs with access, short enough for a cell. */
export function shareOf({ pairs, of }: Pick<AccessCell, "pairs" | "of">): string {
  const part = (pairs / Math.max(of, 1)) * 100;
  return part > 0 && part < 1 ? accessView.cell.little : `${Math.min(99, Math.round(part))}%`;
}

/** How many pairs have access: their number if all do, otherwise a percentage. Screen readers get the numbers. */
function Amount({ cell }: { cell: AccessCell }) {
  const whole = cell.pairs === cell.of;
  if (whole && cell.pairs < 10_000) return t.pairs(cell.pairs);
  return (
    <>
      <span aria-hidden>
        {whole ? `${short.format(cell.pairs)} ${t.pairWord}` : accessView.cell.share(shareOf(cell))}
      </span>
      <span className="sr-only">
        {t.of(cell.pairs, cell.of)} {t.pairWord}
      </span>
    </>
  );
}
