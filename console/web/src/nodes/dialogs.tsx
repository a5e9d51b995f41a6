import { useMemo } from "react";
import { type Node, useNodes } from "@/api";
import { printable, text } from "@/text";
import { Confirm } from "@/ui";
import { AddressesDialog } from "./addresses";
import { BulkCall, useBulk } from "./bulk";
import { NeverExpireDialog, SetExpiryDialog } from "./expiry";
import { ipv4Of } from "./facts";
import { mostListed, NameList } from "./NameList";
import { OwnerDialog, OwnersDialog } from "./owner";
import { RenameDialog } from "./rename";
import { routesLostWith } from "./routes";
import { AddTagsDialog, TagsDialog } from "./tags";

/** An action on nodes that a person starts; a dialog asks for further input. */
export type NodeAction =
  | { name: "rename"; node: Node }
  | { name: "tags" | "neverExpire" | "setExpiry" | "owner" | "addresses"; node: Node }
  | { name: "addTags" | "expire" | "delete" | "owners"; nodes: readonly Node[] };

export default function NodeDialogs({ action, onClose }: { action: NodeAction; onClose(): void }) {
  switch (action.name) {
    case "rename":
      return <RenameDialog node={action.node} onClose={onClose} />;
    case "tags":
      return <TagsDialog node={action.node} onClose={onClose} />;
    case "addTags":
      return <AddTagsDialog nodes={action.nodes} onClose={onClose} />;
    case "neverExpire":
      return <NeverExpireDialog node={action.node} onClose={onClose} />;
    case "owner":
      return <OwnerDialog node={action.node} onClose={onClose} />;
    case "owners":
      return <OwnersDialog nodes={action.nodes} onClose={onClose} />;
    case "addresses":
      return <AddressesDialog node={action.node} onClose={onClose} />;
    case "setExpiry":
      return <SetExpiryDialog node={action.node} onClose={onClose} />;
    default:
      return <Ask name={action.name} nodes={action.nodes} onClose={onClose} />;
  }
}

function Ask({ name, nodes, onClose }: { name: "expire" | "delete"; nodes: readonly Node[]; onClose(): void }) {
  const t = text.nodes;
  const { busy, start } = useBulk(onClose);
  const count = nodes.length;
  const only = count === 1 ? nodes[0] : undefined;
  const one = only && printable(only.givenName);
  const word = count >= 5 ? String(count) : undefined;
  const common = { busy, word, onClose, call: <BulkCall nodes={nodes} action={name} /> };
  if (name === "expire") {
    return (
      <Confirm
        {...common}
        title={one ? t.expire.title(one) : t.many.expireTitle(count)}
        submit={one ? t.expire.submit : t.many.expireSubmit(count)}
        onSubmit={() =>
          void start(nodes, "expire", undefined, one ? { done: t.expire.done(one), failed: t.expire.failed(one) } : {})
        }
      >
        <p>{one ? t.expire.body : t.many.expireBody}</p>
        {!one && <NameList names={nodes.map((node) => printable(node.givenName))} />}
      </Confirm>
    );
  }
  return (
    <Confirm
      {...common}
      title={one ? t.remove.title(one) : t.many.deleteTitle(count)}
      submit={one ? t.remove.submit(one) : t.many.deleteSubmit(count)}
      onSubmit={() =>
        void start(nodes, "delete", undefined, one ? { done: t.remove.done(one), failed: t.remove.failed(one) } : {})
      }
    >
      <p>{only ? t.remove.body(ipv4Of(only)) : t.many.deleteBody}</p>
      {!only && <NameList names={nodes.map((node) => printable(node.givenName))} />}
      <LostRoutes nodes={nodes} />
    </Confirm>
  );
}

/** What happens to the networks behind nodes that are being deleted. */
function LostRoutes({ nodes }: { nodes: readonly Node[] }) {
  const { data } = useNodes();
  const t = text.nodes.remove;
  const routes = useMemo(() => routesLostWith(nodes, data?.items ?? []), [nodes, data]);
  if (routes.length === 0) return null;
  return (
    <div className="space-y-2">
      <p>{t.routes(routes.length)}</p>
      <ul className="list-disc space-y-1 pl-5">
        {routes.slice(0, mostListed).map(({ prefix, exit, other }) => (
          <li key={prefix} className="break-words">
            {exit ? (
              t.exitLost
            ) : (
              <>
                <span className="font-mono text-12 text-ink">{prefix}</span>{" "}
                {other ? t.routeOther(printable(other.givenName)) : <span className="text-bad">{t.routeLost}</span>}
              </>
            )}
          </li>
        ))}
        {routes.length > mostListed && <li>{text.nodes.many.more(routes.length - mostListed)}</li>}
      </ul>
    </div>
  );
}
