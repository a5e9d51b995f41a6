import { clsx } from "clsx";
import { memo, type PointerEvent, useMemo, useRef, useState } from "react";
import { type Lane, laneIcons } from "@/activity";
import type { Node } from "@/api";
import { text } from "@/text";
import { usePreferences } from "@/ui";
import { useWidth } from "@/ui/useWidth";
import { Axis } from "./Axis";
import { heights } from "./heights";
import { Marks } from "./Marks";
import { type EventMark, marksOf, type Told } from "./marks";
import { PresenceControls, PresenceLabels, PresenceRows } from "./PresenceRows";
import { momentWords, shortest, ticks } from "./range";

const t = text.timeline;

interface BandsProps {
  from: number;
  to: number;
  /** Whether the period follows the current time: the right edge is now. */
  live: boolean;
  told: readonly Told[];
  /** Events before this time exist, but are not loaded. */
  knownFrom: number;
  lanes: readonly Lane[];
  onlyLane: Lane | null;
  onLane(lane: Lane): void;
  nodes: readonly Node[];
  usual: boolean;
  onNodes(ids: string[] | null): void;
  marker: number | null;
  onMarker(at: number | null): void;
  onMark(mark: EventMark): void;
  onPeriod(from: number, to: number): void;
  /** Whether the screen is narrow: then there is one lane for all events, and names are above the strips. */
  compact: boolean;
}

/** Events above and presence below, on a common axis, with a marker across both. */
export function Bands(props: BandsProps) {
  const { from, to, told, nodes, compact } = props;
  const lanes = useMemo(() => (compact ? (["all"] as const) : props.lanes), [compact, props.lanes]);
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const { timeZone } = usePreferences();
  const x = useMemo(() => {
    const scale = width / Math.max(1, to - from);
    return (at: number) => (at - from) * scale;
  }, [from, to, width]);
  const marks = useMemo(
    () => (width > 0 ? lanes.flatMap((lane) => marksOf(told, lane, x)) : []),
    [lanes, told, x, width],
  );
  const grid = useMemo(() => (width > 0 ? ticks(from, to, width, timeZone) : []), [from, to, width, timeZone]);
  const [unfolded, setUnfolded] = useState(false);
  const presence = !compact || unfolded;
  const strips = presence ? Math.max(1, nodes.length) * heights.strip * (compact ? 2 : 1) : 0;
  const height = heights.axis + lanes.length * heights.lane + heights.head + strips;
  return (
    <div className="grid shrink-0 grid-cols-[148px_minmax(0,1fr)] border-b border-line bg-surface pr-6 pl-6 max-md:grid-cols-[minmax(0,1fr)] max-md:px-4">
      {!compact && (
        <div className="relative">
          <div style={{ height: heights.axis }} />
          <LaneLabels lanes={props.lanes} only={props.onlyLane} onLane={props.onLane} />
          <PresenceLabels nodes={nodes} onNodes={props.onNodes} from={from} to={to} live={props.live} />
        </div>
      )}
      <div ref={box} className="relative min-w-0 touch-pan-y select-none" style={{ height }}>
        {width > 0 && (
          <Scene
            {...props}
            presence={presence}
            onPresence={() => setUnfolded(!unfolded)}
            drawn={lanes}
            width={width}
            height={height}
            x={x}
            grid={grid}
            marks={marks}
          />
        )}
      </div>
    </div>
  );
}

function Scene({
  from,
  to,
  live,
  knownFrom,
  drawn,
  presence,
  onPresence,
  nodes,
  usual,
  onNodes,
  compact,
  marker,
  onMarker,
  onMark,
  onPeriod,
  width,
  height,
  x,
  grid,
  marks,
}: BandsProps & {
  presence: boolean;
  onPresence(): void;
  drawn: readonly EventMark["lane"][];
  width: number;
  height: number;
  x(at: number): number;
  grid: { at: number; day: boolean }[];
  marks: readonly EventMark[];
}) {
  const at = (place: number) => from + (Math.min(Math.max(place, 0), width) / width) * (to - from);
  const laneEnd = heights.axis + drawn.length * heights.lane;
  const [hover, setHover] = useState<number | null>(null);
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);
  const placeOf = (event: PointerEvent<HTMLElement>) =>
    event.clientX - event.currentTarget.getBoundingClientRect().left;
  const choose = (a: number, b: number) => {
    const [left, right] = [Math.min(a, b), Math.max(a, b)];
    if (right - left >= shortest / 2) onPeriod(left, Math.min(Math.max(right, left + shortest), to));
  };
  return (
    // The axis does the same with the keyboard.
    <div
      className="absolute inset-0 cursor-crosshair"
      onPointerMove={(event) => {
        if (event.pointerType === "touch") return;
        const place = placeOf(event);
        setHover(place);
        if (drag) setDrag({ ...drag, to: place });
      }}
      onPointerLeave={() => !drag && setHover(null)}
      onPointerDown={(event) => {
        if (event.button !== 0 || event.pointerType === "touch") return;
        if ((event.target as Element).closest("[data-event-mark], [data-control]")) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        setDrag({ from: placeOf(event), to: placeOf(event) });
      }}
      onPointerUp={(event) => {
        if (!drag) return;
        const place = placeOf(event);
        setDrag(null);
        if (Math.abs(place - drag.from) < 6) onMarker(at(place));
        else choose(at(drag.from), at(place));
      }}
      onPointerCancel={() => setDrag(null)}
    >
      <Ground width={width} height={height} lanes={drawn.length} grid={grid} x={x} known={Math.max(0, x(knownFrom))} />
      <Marks marks={marks} lanes={drawn} width={width} height={laneEnd} onMark={onMark} from={from} to={to} />
      <div className="absolute inset-x-0" style={{ top: laneEnd }}>
        <PresenceControls
          nodes={nodes}
          usual={usual}
          onNodes={onNodes}
          fold={compact ? { open: presence, toggle: onPresence } : undefined}
        />
        {presence && (
          <PresenceRows
            nodes={nodes}
            from={from}
            to={to}
            live={live}
            width={width}
            compact={compact}
            onNodes={onNodes}
          />
        )}
      </div>
      {drag && Math.abs(drag.to - drag.from) >= 6 && (
        <div
          className="pointer-events-none absolute inset-y-0 border-x border-accent bg-accent/10"
          style={{ left: Math.min(drag.from, drag.to), width: Math.abs(drag.to - drag.from) }}
        />
      )}
      {hover !== null && !drag && <Line x={hover} at={at(hover)} faint width={width} />}
      {marker !== null && marker >= from && marker <= to && <Line x={x(marker)} at={marker} width={width} />}
      <Axis from={from} to={to} grid={grid} x={x} marker={marker} onMarker={onMarker} onPeriod={choose} />
    </div>
  );
}

/** A vertical line across both bands, with its time at the top. */
function Line({ x, at, faint, width }: { x: number; at: number; faint?: boolean; width: number }) {
  const { timeZone } = usePreferences();
  return (
    <div
      className={clsx("pointer-events-none absolute inset-y-0 z-10 w-px", faint ? "bg-control/60" : "bg-accent")}
      style={{ left: x }}
      aria-hidden
    >
      <span
        className={clsx(
          "absolute top-1 rounded px-1.5 text-11 leading-5 whitespace-nowrap tabular-nums",
          faint ? "bg-ink text-canvas" : "bg-accent text-on-accent",
          x > width - 110 ? "right-1" : "left-1",
        )}
      >
        {momentWords(at, timeZone, true)}
      </span>
    </div>
  );
}

/** Lines between lanes and at ticks, and the range that is not loaded. */
const Ground = memo(function Ground({
  width,
  height,
  lanes,
  grid,
  x,
  known,
}: {
  width: number;
  height: number;
  lanes: number;
  grid: { at: number; day: boolean }[];
  x(at: number): number;
  known: number;
}) {
  const bottom = heights.axis + lanes * heights.lane;
  const mixed = grid.some((tick) => !tick.day);
  return (
    <svg width={width} height={height} className="absolute inset-0" aria-hidden="true">
      {known > 0 && (
        <>
          <rect x={0} y={heights.axis} width={known} height={bottom - heights.axis} fill="var(--sunken)" />
          {known > 190 && (
            <text x={8} y={heights.axis + 19} fontSize={11} fill="var(--ink-2)">
              {t.notLoaded}
            </text>
          )}
        </>
      )}
      {grid.map(({ at, day }) => (
        <path
          key={at}
          d={`M${x(at)} ${heights.axis}V${bottom}M${x(at)} ${bottom + heights.head}V${height}`}
          stroke={day && mixed ? "var(--line-strong)" : "var(--hair)"}
        />
      ))}
      {[...Array.from({ length: lanes + 1 }, (_, i) => heights.axis + i * heights.lane), bottom + heights.head].map(
        (y) => (
          <line key={y} x1={0} x2={width} y1={y + 0.5} y2={y + 0.5} stroke="var(--hair)" />
        ),
      )}
    </svg>
  );
});

function LaneLabels({ lanes, only, onLane }: { lanes: readonly Lane[]; only: Lane | null; onLane(lane: Lane): void }) {
  return (
    <ul>
      {lanes.map((lane) => {
        const Icon = laneIcons[lane];
        return (
          <li key={lane} style={{ height: heights.lane }} className="flex items-center border-t border-hair">
            <button
              type="button"
              aria-pressed={only === lane}
              onClick={() => onLane(lane)}
              className="-ml-1.5 flex h-6 items-center gap-2 rounded px-1.5 text-12 text-ink-2 hover:bg-sunken hover:text-ink aria-pressed:text-accent-ink"
            >
              <Icon className="size-3.5 text-ink-3" aria-hidden />
              {text.activity.lanes[lane]}
            </button>
          </li>
        );
      })}
    </ul>
  );
}
