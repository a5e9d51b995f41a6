/** Everything about one node, in the panel beside the list and on its own page. */
import { type ComponentType, lazy, Suspense, useId } from "react";
import { NodeAccess } from "@/access";
import { type Node, useCan } from "@/api";
import type { Right } from "@/api/session";
import { text } from "@/text";
import { Banner, Button, LoadingLines, Tabs, useWrites } from "@/ui";
import { useApproveNodes } from "../approval";
import { waitingRoutes } from "../facts";
import { Activity } from "./Activity";
import { Raw } from "./Raw";
import { NodeRoutes } from "./Routes";
import { Summary } from "./Summary";

export { NodeName, NodeNames } from "./Title";

const t = text.node;
type Tab = keyof typeof t.tabs;

const Connectivity = lazy(() => import("./connectivity"));

const parts: Record<Tab, ComponentType<{ node: Node; deleted: boolean }>> = {
  summary: Summary,
  connectivity: Connectivity,
  routes: NodeRoutes,
  access: NodeAccess,
  activity: Activity,
  raw: Raw,
};
/** Tabs are hidden if the key lacks the permission to see their content. */
const needs: Partial<Record<Tab, Right>> = { access: "policy:read", activity: "history:read" };

function useTabs(name: string): { tabs: Tab[]; value: Tab } {
  const can = useCan();
  const tabs = (Object.keys(parts) as Tab[]).filter((tab) => can(needs[tab] ?? "nodes:read"));
  return { tabs, value: tabs.find((tab) => tab === name) ?? "summary" };
}

export function NodeTabs({
  node,
  tab,
  onTab,
  panel,
}: {
  node: Node;
  tab: string;
  onTab(tab: string): void;
  panel: string;
}) {
  const waiting = waitingRoutes(node).length;
  const { tabs, value } = useTabs(tab);
  return (
    <Tabs
      label={t.tabsLabel}
      tabs={tabs.map((each) => ({
        value: each,
        label: t.tabs[each],
        ...(each === "routes" && waiting > 0 ? { count: waiting, tone: "warn" as const } : {}),
      }))}
      value={value}
      onChange={onTab}
      panel={panel}
    />
  );
}

export function NodePart({ node, tab, panel, deleted }: { node: Node; tab: string; panel: string; deleted: boolean }) {
  const { value } = useTabs(tab);
  const Part = parts[value];
  return (
    <div id={panel} role="tabpanel" aria-labelledby={`${panel}-${value}`}>
      {deleted && (
        <div role="status" className="mb-4 overflow-hidden rounded-lg [&>div]:px-4">
          <Banner tone="warn">{t.deleted}</Banner>
        </div>
      )}
      {node.needsApproval && !deleted && <NeedsApproval node={node} />}
      <Suspense
        fallback={<LoadingLines widths={["w-64", "w-96 max-w-full", "w-80 max-w-full"]} className="space-y-4 py-2" />}
      >
        <Part node={node} deleted={deleted} />
      </Suspense>
    </div>
  );
}

function NeedsApproval({ node }: { node: Node }) {
  const approve = useApproveNodes();
  const { offered, why } = useWrites("nodes:write");
  return (
    <div className="mb-4 overflow-hidden rounded-lg [&>div]:px-4">
      <Banner
        tone="warn"
        action={
          offered && (
            <Button why={why} onClick={() => approve([node])}>
              {text.nodes.approval.submit}
            </Button>
          )
        }
      >
        {text.nodes.approval.needed}
      </Banner>
    </div>
  );
}

export const usePanelId = () => `node${useId()}`;
