import { Link } from "@tanstack/react-router";
import { clsx } from "clsx";
import { ChevronRight, Plus, RotateCcw, X } from "lucide-react";
import { memo, useId, useMemo, useRef, useState } from "react";
import { percentWords, Strip, shareOnline, useSpans } from "@/activity";
import { type Node, useNodes } from "@/api";
import { byName, isServer, NodeMark } from "@/nodes";
import { printable, text } from "@/text";
import { Button, Tip } from "@/ui";
import { heights } from "./heights";

const t = text.timeline;

export function PresenceLabels({
  nodes,
  onNodes,
  ...period
}: {
  nodes: readonly Node[];
  onNodes(ids: string[] | null): void;
  from: number;
  to: number;
  live: boolean;
}) {
  return (
    <>
      <h2 className="flex items-center text-12 font-semibold" style={{ height: heights.head }}>
        {t.presence}
      </h2>
      <ul>
        {nodes.map((node) => (
          <li key={node.id} className="group flex items-center gap-2 pr-2 text-12" style={{ height: heights.strip }}>
            <NodeMark node={node} />
            <NodeName node={node} />
            <span className="grid shrink-0 items-center justify-items-end *:col-start-1 *:row-start-1">
              <Uptime node={node} {...period} />
              <RemoveNode node={node} nodes={nodes} onNodes={onNodes} />
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

/** A server's uptime, if it was not always online. Hidden while the button over it is shown. */
function Uptime({ node, from, to, live }: { node: Node; from: number; to: number; live: boolean }) {
  const { data } = useSpans(node.id, from, live ? undefined : to, to);
  const share = data && isServer(node) && data.some((span) => span.gap) ? shareOnline(data) : null;
  if (share === null) return null;
  return (
    <span className="text-11 text-bad tabular-nums group-focus-within:opacity-0 group-hover:opacity-0">
      {percentWords(share)}
    </span>
  );
}

const NodeName = ({ node }: { node: Node }) => (
  <Link
    to="/nodes/$id"
    params={{ id: node.id }}
    className="min-w-0 flex-1 truncate rounded leading-6 hover:underline"
    title={printable(node.givenName)}
  >
    {printable(node.givenName)}
  </Link>
);

function RemoveNode({
  node,
  nodes,
  onNodes,
}: {
  node: Node;
  nodes: readonly Node[];
  onNodes(ids: string[] | null): void;
}) {
  const label = t.removeNode(printable(node.givenName));
  return (
    <Tip label={label}>
      <button
        type="button"
        aria-label={label}
        onClick={() => onNodes(nodes.filter((each) => each.id !== node.id).map((each) => each.id))}
        className="grid size-6 shrink-0 place-items-center rounded text-ink-3 opacity-0 group-hover:opacity-100 hover:bg-sunken hover:text-ink focus-visible:opacity-100 max-md:opacity-100"
      >
        <X className="size-3.5" aria-hidden />
      </button>
    </Tip>
  );
}

/** Names the shown nodes, and lets the user select others. */
export function PresenceControls({
  nodes,
  usual,
  onNodes,
  fold,
}: {
  nodes: readonly Node[];
  usual: boolean;
  onNodes(ids: string[] | null): void;
  /** On narrow screens, the strips are shown on request. */
  fold?: { open: boolean; toggle(): void };
}) {
  const [adding, setAdding] = useState(false);
  return (
    <div className="flex items-center gap-2 text-12" data-control style={{ height: heights.head }}>
      {fold ? (
        <button
          type="button"
          aria-expanded={fold.open}
          onClick={fold.toggle}
          className="flex h-8 items-center gap-1 font-semibold"
        >
          {t.presence}
          <ChevronRight
            className={clsx("size-3.5 text-ink-3 transition-transform duration-100", fold.open && "rotate-90")}
            aria-hidden
          />
        </button>
      ) : (
        <span className="min-w-0 truncate text-ink-3">{usual ? t.presenceOf : t.presenceChosen}</span>
      )}
      <span className={clsx("ml-auto flex shrink-0 items-center gap-1", fold && !fold.open && "hidden")}>
        {!usual && (
          <Button look="ghost" icon={RotateCcw} className="h-7! px-2! text-12!" onClick={() => onNodes(null)}>
            {t.usualNodes}
          </Button>
        )}
        {adding ? (
          <AddNode
            nodes={nodes}
            onAdd={(id) => onNodes([...nodes.map((node) => node.id), id])}
            onClose={() => setAdding(false)}
          />
        ) : (
          <Button look="ghost" icon={Plus} className="h-7! px-2! text-12!" onClick={() => setAdding(true)}>
            {t.addNode}
          </Button>
        )}
      </span>
    </div>
  );
}

const most = 50;

/** A field that completes names of nodes and adds the named one. */
function AddNode({ nodes, onAdd, onClose }: { nodes: readonly Node[]; onAdd(id: string): void; onClose(): void }) {
  const id = useId();
  const { data } = useNodes();
  const [typed, setTyped] = useState("");
  const input = useRef<HTMLInputElement>(null);
  const found = useMemo(() => {
    const shown = new Set(nodes.map((node) => node.id));
    const word = typed.trim().toLowerCase();
    const fitting = data?.items.filter((node) => !shown.has(node.id) && node.givenName.includes(word)) ?? [];
    return fitting.sort(byName).slice(0, most);
  }, [data, nodes, typed]);
  const add = (name: string, only?: boolean) => {
    const node = found.find((each) => each.givenName === name) ?? (only ? found[0] : undefined);
    if (!node) return false;
    onAdd(node.id);
    setTyped("");
    return true;
  };
  return (
    <>
      <input
        ref={input}
        // biome-ignore lint/a11y/noAutofocus: the person has just asked for it
        autoFocus
        list={id}
        value={typed}
        aria-label={t.addNodeHint}
        placeholder={t.addNodeHint}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => {
          if (!add(event.target.value)) setTyped(event.target.value);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") {
            event.preventDefault();
            if (typed) add(typed, true);
          }
          if (event.key === "Escape") onClose();
        }}
        onBlur={onClose}
        className="h-7 w-44 rounded-md border border-control bg-surface px-2 text-12 outline-offset-0 max-md:text-[16px]"
      />
      <datalist id={id}>
        {found.map((node) => (
          <option key={node.id} value={node.givenName} />
        ))}
      </datalist>
    </>
  );
}

/** The strips, each in the row of its label. */
export const PresenceRows = memo(function PresenceRows({
  nodes,
  from,
  to,
  live,
  width,
  compact,
  onNodes,
}: {
  nodes: readonly Node[];
  from: number;
  to: number;
  live: boolean;
  width: number;
  /** Whether each strip has its label above it, instead of at the side. */
  compact: boolean;
  onNodes(ids: string[] | null): void;
}) {
  if (nodes.length === 0)
    return (
      <p className="flex items-center text-12 text-ink-2" style={{ height: heights.strip }}>
        {t.noPresence}
      </p>
    );
  return nodes.map((node) => (
    <div key={node.id}>
      {compact && (
        <div className="flex items-center gap-2 text-12" style={{ height: heights.strip }} data-control>
          <NodeMark node={node} />
          <NodeName node={node} />
          <RemoveNode node={node} nodes={nodes} onNodes={onNodes} />
        </div>
      )}
      <PresenceRow node={node} from={from} to={to} live={live} width={width} />
    </div>
  ));
});

function PresenceRow({
  node,
  from,
  to,
  live,
  width,
}: {
  node: Node;
  from: number;
  to: number;
  live: boolean;
  width: number;
}) {
  const { data } = useSpans(node.id, from, live ? undefined : to, to);
  return (
    <div className="flex items-center" style={{ height: heights.strip }}>
      {data && <Strip spans={data} from={from} to={to} width={width} height={14} server={isServer(node)} />}
    </div>
  );
}
