/** The page of one node. */
import { Link, useParams } from "@tanstack/react-router";
import { Server, Tag, Trash2 } from "lucide-react";
import type { ReactNode } from "react";
import type { Node } from "@/api";
import { NodeActionsProvider, NodeMenu, OsIcon, useNodeActions } from "@/nodes";
import { NodeName, NodeNames, NodePart, NodeTabs, usePanelId } from "@/nodes/details";
import { useNode } from "@/nodes/useNode";
import { useSearchState } from "@/router/search";
import { RouteActionsProvider } from "@/routes";
import { useActions } from "@/shell/actions";
import { printable, text } from "@/text";
import {
  BackLink,
  Empty,
  ErrorState,
  LoadingLines,
  linkButton,
  PageBody,
  PageHead,
  usePageTitle,
  useShortcuts,
  useWrites,
} from "@/ui";

const t = text.node;

export function NodePage() {
  const { id } = useParams({ from: "/nodes/$id" });
  const { node, deleted, missing, error, retry } = useNode(id);
  usePageTitle(node && printable(node.givenName), text.nodes.nodeTitle);
  if (node)
    return (
      <NodeActionsProvider>
        <RouteActionsProvider>
          <NodeView key={id} node={node} deleted={deleted} />
        </RouteActionsProvider>
      </NodeActionsProvider>
    );
  return (
    <Frame title={text.nodes.nodeTitle}>
      {missing ? (
        <Empty
          icon={Server}
          title={t.missingTitle}
          action={
            <Link to="/nodes" className={linkButton()}>
              {t.all}
            </Link>
          }
        >
          {t.missingBody}
        </Empty>
      ) : error ? (
        <ErrorState title={t.failed} error={error} onRetry={retry} />
      ) : (
        <LoadingLines widths={["w-64", "w-96 max-w-full", "w-80 max-w-full"]} className="space-y-4 py-2" />
      )}
    </Frame>
  );
}

function Frame({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="h-full overflow-y-auto">
      <PageHead title={title} />
      <div className="px-6 py-5 max-md:px-4">{children}</div>
    </div>
  );
}

function NodeView({ node, deleted }: { node: Node; deleted: boolean }) {
  const [search, setSearch] = useSearchState({ tab: "summary" });
  const panel = usePanelId();
  useNodeKeys(node, deleted);
  return (
    <div className="h-full overflow-y-auto">
      <PageHead
        narrow
        title={
          <span className="flex min-w-0 items-start gap-2.5">
            <span className="flex h-8 shrink-0 items-center">
              <OsIcon os={node.os} />
            </span>
            <NodeName node={node} deleted={deleted} />
          </span>
        }
        above={<BackLink to="/nodes">{t.all}</BackLink>}
        below={
          <div className="pt-2">
            <NodeNames node={node} />
            <div className="mt-2 flex">
              <NodeTabs node={node} tab={search.tab} onTab={(tab) => setSearch({ tab })} panel={panel} />
            </div>
          </div>
        }
      >
        {!deleted && <NodeMenu node={node} here />}
      </PageHead>
      <PageBody>
        <NodePart node={node} tab={search.tab} panel={panel} deleted={deleted} />
      </PageBody>
    </div>
  );
}

function useNodeKeys(node: Node, deleted: boolean) {
  const start = useNodeActions();
  const writes = useWrites("nodes:write");
  const may = writes.offered && writes.now && !deleted;
  const group = text.shell.groups.page;
  const actions = text.nodes.actions;
  const tags = () => start({ name: "tags", node });
  const remove = () => start({ name: "delete", nodes: [node] });
  useShortcuts(
    may
      ? [
          { keys: "t", label: actions.tags, group, run: tags },
          { keys: "Delete", label: actions.delete, group, run: remove },
        ]
      : [],
  );
  useActions(
    may
      ? [
          { id: "node.tags", title: actions.tags, icon: Tag, keys: "t", run: tags },
          { id: "node.delete", title: actions.delete, icon: Trash2, run: remove },
        ]
      : [],
  );
}
