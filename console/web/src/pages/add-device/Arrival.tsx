import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { clsx } from "clsx";
import { CircleCheck, Radio } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { accessQuery } from "@/access/query";
import { loginsQuery, type Node, type PreAuthKey, useCan, useConnection, useNodes } from "@/api";
import { unruledTags, usePolicyTags } from "@/keys";
import { ipv4Of, NodeMark, Owner } from "@/nodes";
import { printable, text } from "@/text";
import { announce, Button, linkButton, Warning } from "@/ui";
import { arrivals } from "./join";

const t = text.device.waiting;
const mostShown = 5;
/** How often to look for the device: somebody is at it now, so its request should show up quickly. */
const askEvery = 3000;

/** Waits until the device has joined. */
export function Arrival({
  withKey,
  made,
  onJoined,
  onAnother,
}: {
  withKey: boolean;
  made: PreAuthKey | null;
  onJoined(): void;
  onAnother(): void;
}) {
  const { data } = useNodes();
  const connection = useConnection();
  const [before, setBefore] = useState<ReadonlySet<string> | null>(null);
  const known = before ?? (data?.complete ? new Set(data.items.map((node) => node.id)) : null);
  if (!before && known) setBefore(known);
  const joined = data && known && (made || !withKey) ? arrivals(data.items, known, made?.id ?? null).reverse() : [];

  const told = useRef(0);
  useEffect(() => {
    if (joined.length > told.current && joined[0]) announce(t.joined(printable(joined[0].givenName)));
    if (joined.length > 0) onJoined();
    told.current = joined.length;
  }, [joined.length, joined[0], onJoined]);

  const again = () => {
    setBefore(null);
    onAnother();
  };
  return (
    <section aria-labelledby="arrival" className="rounded-lg border border-line bg-surface p-4">
      <h2 id="arrival" className="flex items-center gap-2 font-semibold">
        {joined.length > 0 ? (
          <CircleCheck className="size-4 text-ok" aria-hidden />
        ) : (
          <Radio className="size-4 animate-pulse text-accent" aria-hidden />
        )}
        {joined[0] ? t.joined(printable(joined[0].givenName)) : t.title}
      </h2>
      {joined.length === 0 && (
        <p className="mt-2 text-ink-2">
          {connection.name === "offline" ? t.offline : made ? t.key : withKey ? t.noKey : t.body}
        </p>
      )}
      {joined.length === 0 && !withKey && <Asking />}
      <ul className="mt-3 space-y-3 empty:hidden">
        {joined.slice(0, mostShown).map((node) => (
          <Arrived key={node.id} node={node} />
        ))}
        {joined.length > mostShown && <li className="text-ink-2">{t.more(joined.length - mostShown)}</li>}
      </ul>
      {joined.length > 0 && (
        <Button className="mt-4" onClick={again}>
          {t.another}
        </Button>
      )}
    </section>
  );
}

function Arrived({ node }: { node: Node }) {
  const unseen = useUnseen(node);
  const name = printable(node.givenName);
  return (
    <li className="layer-in space-y-2 rounded-md bg-canvas p-3">
      <div className="flex min-w-0 items-center gap-2">
        <NodeMark node={node} />
        <span className="min-w-0 flex-1 truncate font-medium">{name}</span>
        <Link to="/nodes/$id" params={{ id: node.id }} className={linkButton()} aria-label={t.open(name)}>
          {text.nodes.actions.open}
        </Link>
      </div>
      <div className="flex min-w-0 flex-wrap items-center gap-2 text-12 text-ink-2">
        <span className="font-mono">{ipv4Of(node)}</span>
        <Owner node={node} />
      </div>
      {unseen && (
        <Warning>
          {unseen}{" "}
          <Link to="/policy" className="font-medium underline underline-offset-2">
            {text.device.openPolicy}
          </Link>
        </Warning>
      )}
    </li>
  );
}

/** Why a node can reach no other node and none can reach it; empty if any can, or if there are no other nodes. */
function useUnseen(node: Node): string {
  const policy = usePolicyTags();
  const others = useNodes().data?.items.some((other) => other.id !== node.id && !other.expired);
  const asked = { enabled: useCan()("policy:read") && others === true };
  const { data: reaches } = useQuery({ ...accessQuery({ from: [node.id] }), ...asked });
  const { data: reached } = useQuery({ ...accessQuery({ to: [node.id] }), ...asked });
  const unruled = policy ? unruledTags(policy, node.tags) : [];
  const alone = reaches && reached && reaches.cells.length + reached.cells.length === 0;
  if (unruled.length > 0 && alone !== false) return text.device.noRule(unruled.join(", "));
  return alone ? text.device.noAccess : "";
}

/** Devices that wait for approval: one of them may be the new device. */
function Asking() {
  const { data } = useQuery({ ...loginsQuery, enabled: useCan()("logins:read"), refetchInterval: askEvery });
  if (!data || data.length === 0) return null;
  return (
    <ul className="mt-3 space-y-2">
      {data.slice(0, mostShown).map((login) => (
        <li key={login.code} className="rounded-md bg-warn-soft p-3 text-warn">
          <p className="break-words">
            {t.asks(printable(login.hostname))}{" "}
            <span className="font-mono font-medium whitespace-nowrap">{login.code}</span>
          </p>
          <Link to="/requests" className={clsx(linkButton(), "mt-2")}>
            {t.review}
          </Link>
        </li>
      ))}
    </ul>
  );
}
