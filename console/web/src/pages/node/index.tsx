/** One node on a page of its own. */
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { nodeQuery } from "@/api";
import { NodeActionsProvider, NodeMenu } from "@/nodes";
import { NodeSummary } from "@/pages/nodes/NodeSummary";
import { printable, text } from "@/text";
import { ErrorState, Page } from "@/ui";

export function NodePage() {
  const { id } = useParams({ from: "/nodes/$id" });
  const { data, error, refetch } = useQuery(nodeQuery(id));
  const node = data?.data.node;
  return (
    <NodeActionsProvider>
      <Page title={node ? printable(node.givenName) : text.nodes.nodeTitle} actions={node && <NodeMenu node={node} />}>
        {error ? (
          <ErrorState title={text.nodes.nodeTitle} error={error} onRetry={() => void refetch()} />
        ) : (
          node && <NodeSummary node={node} />
        )}
      </Page>
    </NodeActionsProvider>
  );
}
