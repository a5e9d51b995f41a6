import type { ReactNode } from "react";
import type { Node } from "@/api";
import { NodeMark, Owner, RouteBadges, stateOf } from "@/nodes";
import { printable, text } from "@/text";
import { CopyButton, Time } from "@/ui";

/** The facts of a node, as the panel and the page show them. */
export function NodeSummary({ node }: { node: Node }) {
  const t = text.nodes.panel;
  return (
    <dl className="grid grid-cols-[120px_minmax(0,1fr)] items-center gap-y-2.5 text-13">
      <Fact label={text.nodes.filters.state}>
        <span className="flex items-center gap-2">
          <NodeMark node={node} /> {text.nodes.state[stateOf(node)]}
        </span>
      </Fact>
      <Fact label={t.addresses}>
        {node.ipAddresses.map((address) => (
          <span key={address} className="flex items-center gap-1 font-mono text-12">
            {address} <CopyButton value={address} what={address} />
          </span>
        ))}
      </Fact>
      <Fact label={t.owner}>
        <Owner node={node} />
      </Fact>
      {node.availableRoutes.length > 0 && (
        <Fact label={text.nodes.columns.routes}>
          <RouteBadges node={node} />
        </Fact>
      )}
      <Fact label={t.system}>{printable([node.os, node.arch, node.clientVersion].filter(Boolean).join(" · "))}</Fact>
      <Fact label={t.lastSeen}>{node.online ? text.common.now : <Time at={node.lastSeen} />}</Fact>
      <Fact label={text.nodes.columns.expiry}>{node.expiry ? <Time at={node.expiry} /> : text.common.never}</Fact>
      <Fact label={t.created}>
        <Time at={node.createdAt} />
      </Fact>
    </dl>
  );
}

function Fact({ label, children }: { label: string; children: ReactNode }) {
  return (
    <>
      <dt className="self-start pt-0.5 text-ink-2">{label}</dt>
      <dd className="min-w-0">{children}</dd>
    </>
  );
}
