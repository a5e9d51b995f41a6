/** All about one node, in the panel beside the list and on its own page. */
import { type ReactNode, useId } from "react";
import type { Node } from "@/api";
import { text } from "@/text";
import { Banner, Tabs } from "@/ui";
import { waitingRoutes } from "../facts";
import { Raw } from "./Raw";
import { NodeRoutes } from "./Routes";
import { Summary } from "./Summary";

export { NodeName, NodeNames } from "./Title";

const t = text.node;
type Tab = keyof typeof t.tabs;

const parts: Partial<Record<Tab, (props: { node: Node; deleted: boolean }) => ReactNode>> = {
  summary: Summary,
  routes: NodeRoutes,
  raw: Raw,
};
const tabs = Object.keys(parts) as Tab[];

/** The tab that an address names. */
const tabOf = (name: string): Tab => tabs.find((tab) => tab === name) ?? "summary";

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
  return (
    <Tabs
      label={t.tabsLabel}
      tabs={tabs.map((value) => ({
        value,
        label: t.tabs[value],
        ...(value === "routes" && waiting > 0 ? { count: waiting, tone: "warn" as const } : {}),
      }))}
      value={tabOf(tab)}
      onChange={onTab}
      panel={panel}
    />
  );
}

export function NodePart({ node, tab, panel, deleted }: { node: Node; tab: string; panel: string; deleted: boolean }) {
  const value = tabOf(tab);
  const Part = parts[value] ?? Summary;
  return (
    <div id={panel} role="tabpanel" aria-labelledby={`${panel}-${value}`}>
      {deleted && (
        <div role="status" className="mb-4 overflow-hidden rounded-lg [&>div]:px-4">
          <Banner tone="warn">{t.deleted}</Banner>
        </div>
      )}
      <Part node={node} deleted={deleted} />
    </div>
  );
}

export const usePanelId = () => `node${useId()}`;
