/** A drawing of sources, the rules that apply to them, and their destinations, with our own fixed layout. */
import { clsx } from "clsx";
import { type KeyboardEvent, type ReactNode, useMemo, useRef, useState } from "react";
import { type AccessRow, ChangeSign, lineOf, PrincipalName } from "@/access";
import { printable } from "@/text";
import { accessMap, accessView } from "@/text/access";
import { Button } from "@/ui";
import { useWidth } from "@/ui/useWidth";
import { type FlowEdge, type FlowItem, itemHeight, layOutFlow, mostPaths, path, ruleId } from "./flow";
import { combined } from "./tidyMap";

const t = accessMap;
const wide = [200, 288, 200] as const;
const narrow = [156, 208, 156] as const;
const least = 96; // for the paths between two columns
const head = 36;

export function Flow({
  rows,
  focus,
  onFocus,
  openRule,
  onOpenRule,
  chooser,
  chosen,
  all,
  onAll,
  onExpand,
}: {
  rows: readonly AccessRow[];
  /** Whether to draw more than just the largest paths. */
  all: boolean;
  onAll(all: boolean): void;
  /** Shows combined networks separately. */
  onExpand(): void;
  /** The field that selects a node. */
  chooser: ReactNode;
  /** Whether a node is selected. */
  chosen: boolean;
  /** The ID of the name whose paths stay visible; empty for all. */
  focus: string;
  onFocus(id: string): void;
  openRule: string;
  onOpenRule(id: string): void;
}) {
  const frame = useRef<HTMLDivElement>(null);
  const room = useWidth(frame) - 48;
  const fits = room >= wide[0] + wide[1] + wide[2] + 2 * least;
  const widths = fits ? wide : narrow;
  const width = Math.max(room, widths[0] + widths[1] + widths[2] + 2 * least);
  const most = all ? mostPaths.more : mostPaths.usual;
  const flow = useMemo(() => layOutFlow(rows, focus, most), [rows, focus, most]);
  const choose = (item: FlowItem) => {
    if (item.rule) onOpenRule(ruleId(item.rule));
    else if (item.principal?.kind === combined) onExpand();
    else onFocus(focus === item.id ? "" : item.id);
  };
  const [hovered, setHovered] = useState("");
  const x = [0, (width - widths[1]) / 2, width - widths[2]] as const;
  return (
    <div ref={frame} className="min-h-0 flex-1 overflow-auto bg-surface px-6 pb-6">
      <div className="flex min-h-12 items-center gap-3 text-12 text-ink-2" style={{ width }}>
        <span className="flex-1">
          {flow.drawn < flow.paths ? accessView.flow.largest(flow.drawn, flow.paths) : t.flow.hint}
        </span>
        {(all ? flow.paths > mostPaths.usual : flow.drawn < flow.paths) && (
          <Button onClick={() => onAll(!all)}>{all ? accessView.flow.fewer : accessView.flow.more}</Button>
        )}
        {chooser}
        {(focus || chosen) && <Button onClick={() => onFocus("")}>{t.flow.all}</Button>}
      </div>
      {flow.items.length === 0 && <p className="text-13 text-ink-2">{t.flow.noPaths}</p>}
      <div className="relative" hidden={flow.items.length === 0} style={{ width, height: head + flow.height }}>
        {[t.flow.sources, t.flow.rules, t.flow.destinations].map((title, i) => (
          <h2 key={title} className="absolute top-0 text-12 font-medium text-ink-2" style={{ left: x[i] }}>
            {title}
          </h2>
        ))}
        <Edges
          edges={flow.edges}
          x={x}
          widths={widths}
          width={width}
          height={flow.height}
          hovered={hovered}
          openRule={openRule}
          onHover={setHovered}
          onOpen={(edge) => onOpenRule(ruleId(edge.rule))}
        />
        {flow.items.map((item) => (
          <Item
            key={item.id}
            item={item}
            left={x[item.column]}
            width={widths[item.column]}
            on={focus === item.id || (item.rule !== undefined && openRule === ruleId(item.rule))}
            onChoose={() => choose(item)}
            onHover={setHovered}
          />
        ))}
      </div>
    </div>
  );
}

const borders = {
  gained: "border-ok hover:bg-ok-soft",
  lost: "border-dashed border-bad hover:bg-bad-soft",
  changed: "border-warn hover:bg-warn-soft",
  "": "border-line-strong hover:bg-canvas",
};

function Item({
  item,
  left,
  width,
  on,
  onChoose,
  onHover,
}: {
  item: FlowItem;
  left: number;
  width: number;
  on: boolean;
  onChoose(): void;
  onHover(id: string): void;
}) {
  const name = itemName(item);
  return (
    <button
      type="button"
      aria-pressed={item.rule ? undefined : on}
      onClick={onChoose}
      onPointerEnter={() => onHover(item.id)}
      onPointerLeave={() => onHover("")}
      className={clsx(
        "absolute flex items-center gap-2 rounded-md border bg-surface px-2.5 text-left text-12",
        on ? "border-accent bg-picked" : borders[item.change],
      )}
      style={{ left, top: head + item.y, width, height: itemHeight }}
    >
      <ChangeSign change={item.change} />
      {item.rule ? (
        <>
          <span className="shrink-0 font-mono text-11 text-ink-3 tabular-nums">
            <span className="sr-only">{t.flow.line} </span>
            {lineOf(item.rule) || "–"}
          </span>
          <span className="min-w-0 flex-1 truncate">{name}</span>
        </>
      ) : (
        <>
          <span className="sr-only">{t.flow.only}</span>
          <span className="min-w-0 flex-1">{item.principal && <PrincipalName principal={item.principal} />}</span>
          {item.principal?.kind !== combined && (
            <span className="text-11 text-ink-3 tabular-nums">{item.principal?.nodes.toLocaleString("en")}</span>
          )}
        </>
      )}
    </button>
  );
}

/** The label of an item. A rule is labelled with its comment if it has one. */
function itemName(item: FlowItem): string {
  if (item.principal) return printable(item.principal.name);
  const rule = item.rule;
  if (!rule) return "";
  return printable(rule.comment || `${rule.from.join(", ")} → ${rule.to.map((to) => to.name).join(", ")}`, 120);
}

const strokes = { gained: "stroke-ok", lost: "stroke-bad", changed: "stroke-warn", "": "stroke-accent" };

/** The paths: a single Tab stop, with arrow keys to move between them. */
function Edges({
  edges,
  x,
  widths,
  width,
  height,
  hovered,
  openRule,
  onHover,
  onOpen,
}: {
  edges: readonly FlowEdge[];
  x: readonly [number, number, number];
  widths: readonly [number, number, number];
  width: number;
  height: number;
  hovered: string;
  openRule: string;
  onHover(id: string): void;
  onOpen(edge: FlowEdge): void;
}) {
  const group = useRef<SVGSVGElement>(null);
  const [active, setActive] = useState(0);
  const at = Math.min(active, edges.length - 1);
  const key = (event: KeyboardEvent, edge: FlowEdge) => {
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      onOpen(edge);
    } else if (step) {
      event.preventDefault();
      const next = (at + step + edges.length) % edges.length;
      setActive(next);
      (group.current?.children[next] as SVGElement | undefined)?.focus();
    }
  };
  const lit = (edge: FlowEdge) =>
    hovered === edge.id || hovered === edge.from.id || hovered === edge.to.id || openRule === ruleId(edge.rule);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a drawing cannot be a fieldset
    <svg
      ref={group}
      role="group"
      aria-label={t.flow.label}
      width={width}
      height={Math.max(height, 1)}
      className="absolute left-0 overflow-visible"
      style={{ top: head }}
    >
      {edges.map((edge, i) => {
        const line = path(
          x[edge.from.column] + widths[edge.from.column],
          edge.from.y + itemHeight / 2,
          x[edge.to.column],
          edge.to.y + itemHeight / 2,
        );
        const words = [
          t.flow.edge(itemName(edge.from), itemName(edge.to), edge.pairs),
          edge.change && t.draft[edge.change],
        ];
        return (
          // biome-ignore lint/a11y/useSemanticElements: a path in a drawing cannot be a button element
          <g
            key={edge.id}
            role="button"
            tabIndex={i === at ? 0 : -1}
            aria-label={words.filter(Boolean).join(", ")}
            onClick={() => onOpen(edge)}
            onKeyDown={(event) => key(event, edge)}
            onFocus={() => setActive(i)}
            onPointerEnter={() => onHover(edge.id)}
            onPointerLeave={() => onHover("")}
            className="group cursor-pointer outline-none"
          >
            <path d={line} fill="none" strokeWidth={Math.max(edge.width + 8, 12)} className="stroke-transparent" />
            <path
              d={line}
              fill="none"
              strokeWidth={edge.width}
              strokeDasharray={edge.change === "lost" ? "6 5" : undefined}
              className={clsx(
                strokes[edge.change],
                "group-focus-visible:opacity-100",
                lit(edge) ? "opacity-90" : hovered ? "opacity-10" : edge.change ? "opacity-70" : "opacity-25",
              )}
            />
          </g>
        );
      })}
    </svg>
  );
}
