import { useEffect, useMemo, useState } from "react";
import { ApiError, type Node, useNodes } from "@/api";
import { printable, text } from "@/text";
import { ApiCall, Banner, Button, Confirm, Dialog, Field, Input, useStatus } from "@/ui";
import type { NodeAction } from "./actions";
import { dnsName, ipv4Of, waitingRoutes } from "./facts";
import { useNodeWrites } from "./writes";

export default function NodeDialogs({ action, onClose }: { action: NodeAction; onClose(): void }) {
  switch (action.name) {
    case "rename":
      return <Rename node={action.node} onClose={onClose} />;
    case "tags":
      return <Tags node={action.node} onClose={onClose} />;
    case "addTags":
      return <AddTags nodes={action.nodes} onClose={onClose} />;
    default:
      return <Ask name={action.name} nodes={action.nodes} onClose={onClose} />;
  }
}

/** What If-Match takes, read when a dialogue opens. */
function useEtag(node: Node): string | null {
  const writes = useNodeWrites();
  const [etag, setEtag] = useState<string | null>(null);
  useEffect(() => {
    let here = true;
    writes.etag(node).then(
      (tag) => here && setEtag(tag),
      () => {},
    );
    return () => {
      here = false;
    };
  }, [writes, node]);
  return etag;
}

/** A write that found something else than the person saw. */
interface Conflict {
  mine: string;
  theirs: string;
}

function ConflictView({ conflict, onMine, onTheirs }: { conflict: Conflict; onMine(): void; onTheirs(): void }) {
  const t = text.nodes.conflict;
  return (
    <div role="alert" className="space-y-3 rounded-lg border border-line-strong p-3">
      <p className="font-medium text-ink">{t.title}</p>
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
        <dt>{t.mine}</dt>
        <dd className="font-mono break-words text-ink">{conflict.mine}</dd>
        <dt>{t.theirs}</dt>
        <dd className="font-mono break-words text-ink">{conflict.theirs}</dd>
      </dl>
      <div className="flex gap-2">
        <Button look="primary" onClick={onMine}>
          {t.keepMine}
        </Button>
        <Button onClick={onTheirs}>{t.keepTheirs}</Button>
      </div>
    </div>
  );
}

/** What is there now, when a write was refused because somebody else was quicker. */
const nodeNow = (error: unknown) =>
  error instanceof ApiError && error.stale ? ((error.problem.current as Node | undefined) ?? null) : null;

function Rename({ node, onClose }: { node: Node; onClose(): void }) {
  const t = text.nodes.rename;
  const writes = useNodeWrites();
  const status = useStatus();
  const etag = useEtag(node);
  const { data } = useNodes();
  const [typed, setTyped] = useState(node.givenName);
  const [conflict, setConflict] = useState<Conflict | null>(null);
  const name = dnsName(typed);
  const clash = data?.items.some((other) => other.id !== node.id && other.givenName === name);
  const problem = name === "" ? t.bad : clash ? t.clash(name) : undefined;

  const send = (ifMatch: string | null) => {
    if (problem) return;
    if (name === node.givenName) return onClose();
    const before = node.givenName;
    writes.rename(node, name, ifMatch).then(
      () => {
        onClose();
        status.done(t.done(before, name), () =>
          writes.rename({ ...node, givenName: name }, before).then(
            () => status.done(t.undone(before)),
            (error) => status.failed(t.failed(name), error),
          ),
        );
      },
      (error) => {
        const now = nodeNow(error);
        if (now && now.givenName !== before) return setConflict({ mine: name, theirs: printable(now.givenName) });
        if (now) return send(null);
        onClose();
        status.failed(t.failed(before), error);
      },
    );
  };
  return (
    <Dialog
      title={t.title(printable(node.givenName))}
      onClose={onClose}
      onSubmit={() => send(etag)}
      footer={
        <>
          <ApiCall method="post" path={`/api/v1/node/${node.id}/rename/${encodeURIComponent(name)}`} />
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button type="submit" look="primary" disabled={Boolean(problem)}>
            {t.submit}
          </Button>
        </>
      }
    >
      {conflict && <ConflictView conflict={conflict} onMine={() => send(null)} onTheirs={onClose} />}
      <Field label={t.label} error={problem} hint={t.becomes(name || "…")}>
        {(control) => (
          <Input
            {...control}
            mono
            value={typed}
            onChange={(e) => setTyped(e.target.value)}
            autoFocus
            onFocus={(e) => e.target.select()}
          />
        )}
      </Field>
    </Dialog>
  );
}

const tagsOf = (typed: string) => [...new Set(typed.split(/[\s,]+/).filter(Boolean))].sort();
const notATag = (tags: string[]) => tags.find((tag) => !/^tag:[a-zA-Z][a-zA-Z0-9-]*$/.test(tag));

function Tags({ node, onClose }: { node: Node; onClose(): void }) {
  const t = text.nodes.tags;
  const writes = useNodeWrites();
  const status = useStatus();
  const etag = useEtag(node);
  const [typed, setTyped] = useState(node.tags.join(" "));
  const [conflict, setConflict] = useState<Conflict | null>(null);
  const tags = tagsOf(typed);
  const bad = notATag(tags);
  const problem = bad ? t.bad(bad) : tags.length === 0 && node.tags.length > 0 ? t.needsOne : undefined;
  const name = printable(node.givenName);
  const owned = node.tags.length === 0;

  const send = (ifMatch: string | null) => {
    if (problem) return;
    if (tags.join(" ") === node.tags.join(" ")) return onClose();
    writes.setTags(node, tags, ifMatch).then(
      () => {
        onClose();
        // The first tag takes the node from its user, which no tag brings back.
        const undo = owned
          ? undefined
          : () =>
              writes.setTags({ ...node, tags }, node.tags).then(
                () => status.done(t.undone(name)),
                (error) => status.failed(t.failed(name), error),
              );
        status.done(t.done(name), undo);
      },
      (error) => {
        const now = nodeNow(error);
        if (now && now.tags.join(" ") !== node.tags.join(" "))
          return setConflict({ mine: tags.join(" "), theirs: now.tags.join(" ") });
        if (now) return send(null);
        onClose();
        status.failed(t.failed(name), error);
      },
    );
  };
  return (
    <Dialog
      title={t.title(name)}
      onClose={onClose}
      onSubmit={() => send(etag)}
      footer={
        <>
          <ApiCall method="post" path={`/api/v1/node/${node.id}/tags`} body={{ tags }} />
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button type="submit" look="primary" disabled={Boolean(problem)}>
            {t.submit}
          </Button>
        </>
      }
    >
      {conflict && <ConflictView conflict={conflict} onMine={() => send(null)} onTheirs={onClose} />}
      <Field label={t.label} hint={t.hint} error={problem}>
        {(control) => <Input {...control} mono value={typed} onChange={(e) => setTyped(e.target.value)} autoFocus />}
      </Field>
      {owned && tags.length > 0 && <Banner tone="warn">{t.leaves(printable(node.user?.name ?? ""))}</Banner>}
    </Dialog>
  );
}

function AddTags({ nodes, onClose }: { nodes: readonly Node[]; onClose(): void }) {
  const t = text.nodes.tags;
  const run = useBulk(onClose);
  const [typed, setTyped] = useState("");
  const tags = tagsOf(typed);
  const bad = notATag(tags);
  const ready = tags.length > 0 && !bad;
  return (
    <Dialog
      title={t.titleMany(nodes.length)}
      onClose={onClose}
      onSubmit={() => ready && run.start(nodes, "addTags", tags)}
      footer={
        <>
          <BulkCall nodes={nodes} action="addTags" tags={tags} />
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button type="submit" look="primary" disabled={!ready || run.busy}>
            {t.submitMany(nodes.length)}
          </Button>
        </>
      }
    >
      <Field label={t.label} hint={t.hint} error={bad && t.bad(bad)}>
        {(control) => <Input {...control} mono value={typed} onChange={(e) => setTyped(e.target.value)} autoFocus />}
      </Field>
    </Dialog>
  );
}

/** Does it to all, and says which failed and why, with a way to try those again. */
function useBulk(onClose: () => void) {
  const writes = useNodeWrites();
  const status = useStatus();
  const [busy, setBusy] = useState(false);
  const start = async (
    nodes: readonly Node[],
    action: Parameters<typeof writes.bulk>[1],
    tags?: string[],
    done?: string,
  ) => {
    setBusy(true);
    const t = text.nodes.many;
    try {
      const failed = await writes.bulk(nodes, action, tags);
      if (failed.length === 0) status.done(done ?? t.done(nodes.length));
      else {
        const reasons = failed.slice(0, 3).map(({ node, why }) => `${printable(node.givenName)}: ${why}`);
        status.failed(t.partly(nodes.length - failed.length, failed.length), reasons.join(" · "), {
          label: t.retry(failed.length),
          run: () =>
            void start(
              failed.map(({ node }) => node),
              action,
              tags,
              done,
            ),
        });
      }
    } catch (error) {
      status.failed(t.failed, error);
    }
    setBusy(false);
    onClose();
  };
  return { busy, start };
}

function Ask({
  name,
  nodes,
  onClose,
}: {
  name: "approve" | "expire" | "delete" | "addTags";
  nodes: readonly Node[];
  onClose(): void;
}) {
  const t = text.nodes;
  const { busy, start } = useBulk(onClose);
  const count = nodes.length;
  const only = count === 1 ? nodes[0] : undefined;
  const one = only && printable(only.givenName);
  const word = count >= 5 && name !== "approve" ? String(count) : undefined;
  const action = name === "approve" ? "approveRoutes" : name;
  const common = { busy, word, onClose, call: <BulkCall nodes={nodes} action={action} /> };
  if (name === "approve") {
    return (
      <Confirm
        {...common}
        danger={false}
        title={t.many.approveTitle(count)}
        submit={t.many.approveSubmit}
        onSubmit={() => void start(nodes, "approveRoutes")}
      >
        <p>{t.many.approveBody}</p>
        <List
          items={nodes.flatMap((node) => waitingRoutes(node).map((route) => `${printable(node.givenName)}: ${route}`))}
        />
      </Confirm>
    );
  }
  if (name === "expire") {
    return (
      <Confirm
        {...common}
        title={one ? t.expire.title(one) : t.many.expireTitle(count)}
        submit={one ? t.expire.submit : t.many.expireSubmit(count)}
        onSubmit={() => void start(nodes, "expire", undefined, one && t.expire.done(one))}
      >
        <p>{one ? t.expire.body : t.many.expireBody}</p>
        {!one && <List items={nodes.map((node) => printable(node.givenName))} />}
      </Confirm>
    );
  }
  return (
    <Confirm
      {...common}
      title={one ? t.remove.title(one) : t.many.deleteTitle(count)}
      submit={one ? t.remove.submit(one) : t.many.deleteSubmit(count)}
      onSubmit={() => void start(nodes, "delete", undefined, one && t.remove.done(one))}
    >
      <p>{only ? t.remove.body(ipv4Of(only)) : t.many.deleteBody}</p>
      {!only && <List items={nodes.map((node) => printable(node.givenName))} />}
      <LostRoutes nodes={nodes} />
    </Confirm>
  );
}

const BulkCall = ({ nodes, action, tags }: { nodes: readonly Node[]; action: string; tags?: string[] }) => (
  <ApiCall method="post" path="/api/v1/node/bulk" body={{ ids: nodes.map((node) => node.id), action, tags }} />
);

function List({ items }: { items: readonly string[] }) {
  const most = 8;
  return (
    <ul className="rounded-md bg-chip px-3 py-2 font-mono text-12 text-ink">
      {items.slice(0, most).map((item) => (
        <li key={item} className="truncate">
          {item}
        </li>
      ))}
      {items.length > most && <li className="text-ink-2">{text.nodes.many.more(items.length - most)}</li>}
    </ul>
  );
}

/** What becomes of the networks behind nodes that go. */
function LostRoutes({ nodes }: { nodes: readonly Node[] }) {
  const { data } = useNodes();
  const t = text.nodes.remove;
  const routes = useMemo(() => {
    const going = new Set(nodes.map((node) => node.id));
    const prefixes = [...new Set(nodes.flatMap((node) => node.approvedRoutes))];
    return prefixes.map((prefix) => {
      const other = data?.items.find(
        (node) => !going.has(node.id) && node.approvedRoutes.includes(prefix) && node.availableRoutes.includes(prefix),
      );
      return other ? t.routeOther(prefix, printable(other.givenName)) : t.routeLost(prefix);
    });
  }, [nodes, data, t]);
  if (routes.length === 0) return null;
  return (
    <div>
      <p>{t.routes(routes.length)}</p>
      <List items={routes} />
    </div>
  );
}
