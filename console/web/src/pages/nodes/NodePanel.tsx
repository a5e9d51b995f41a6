import { Link } from "@tanstack/react-router";
import { ExternalLink, Server } from "lucide-react";
import { NodeMenu } from "@/nodes";
import { NodeNames, NodePart, NodeTabs, usePanelId } from "@/nodes/details";
import { useNode } from "@/nodes/useNode";
import { printable, text } from "@/text";
import { Empty, ErrorState, SidePanel, Skeleton } from "@/ui";

/** The details of a node, next to the list. */
export default function NodePanel({
  id,
  tab,
  onTab,
  onClose,
}: {
  id: string;
  tab: string;
  onTab(tab: string): void;
  onClose(): void;
}) {
  const { node, deleted, missing, error, retry } = useNode(id);
  const panel = usePanelId();
  if (!node)
    return (
      <SidePanel title={text.nodes.nodeTitle} onClose={onClose}>
        {missing ? (
          <Empty icon={Server} title={text.node.missingTitle}>
            {text.node.missingBody}
          </Empty>
        ) : error ? (
          <ErrorState title={text.node.failed} error={error} onRetry={retry} />
        ) : (
          <Skeleton className="w-48" />
        )}
      </SidePanel>
    );
  return (
    <SidePanel
      title={printable(node.givenName)}
      onClose={onClose}
      actions={
        !deleted && (
          <>
            <Link
              to="/nodes/$id"
              params={{ id }}
              search={{ tab } as never}
              aria-label={text.nodes.panel.openPage}
              className="grid size-8 place-items-center rounded-md text-ink-2 hover:bg-sunken"
            >
              <ExternalLink className="size-4" aria-hidden />
            </Link>
            <NodeMenu node={node} />
          </>
        )
      }
    >
      <div className="-mt-1 mb-4 border-b border-line">
        <NodeNames node={node} />
        <div className="mt-1 flex">
          <NodeTabs node={node} tab={tab} onTab={onTab} panel={panel} />
        </div>
      </div>
      <NodePart node={node} tab={tab} panel={panel} deleted={deleted} />
    </SidePanel>
  );
}
