import { Route as RouteIcon } from "lucide-react";
import { useId } from "react";
import { type Node, useNodes } from "@/api";
import { printable, text } from "@/text";
import { Badge, Empty, Switch, type Tone, useStatus, useWrites } from "@/ui";
import { type NodeRoute, type RouteState, routesOf } from "../routes";
import { useNodeWrites } from "../writes";

const t = text.node.routes;
const tones: Record<RouteState, Tone> = {
  waiting: "warn",
  serving: "ok",
  standby: "plain",
  offline: "plain",
  unoffered: "plain",
};

/** What a node offers to lead to, each with a switch. */
export function NodeRoutes({ node, deleted }: { node: Node; deleted: boolean }) {
  const { data } = useNodes();
  const routes = routesOf(node, data?.items ?? []);
  if (routes.length === 0)
    return (
      <Empty icon={RouteIcon} title={t.none}>
        {t.noneBody}
      </Empty>
    );
  return (
    <ul className="divide-y divide-hair rounded-lg border border-line bg-surface">
      {routes.map((route) => (
        <Line key={route.prefixes.join()} node={node} route={route} deleted={deleted} />
      ))}
    </ul>
  );
}

function Line({ node, route, deleted }: { node: Node; route: NodeRoute; deleted: boolean }) {
  const { offered, now } = useWrites("routes:write");
  const turn = useSwitch(node, route);
  const id = useId();
  const label = route.exit ? t.exit : (route.prefixes[0] ?? "");
  return (
    <li className="flex items-center gap-4 px-4 py-3">
      <div className="min-w-0 flex-1">
        <div id={id} className={route.exit ? "font-medium" : "font-mono text-13 font-medium break-all"}>
          {label}
        </div>
        <div className="mt-1 flex flex-wrap items-center gap-x-2 gap-y-1 text-12 text-ink-2">
          <Badge tone={tones[route.state]}>{t.states[route.state]}</Badge>
          <span>{route.exit ? t.exitBody : others(route)}</span>
        </div>
      </div>
      {offered && !deleted && (
        <Switch
          label={t.approve(label)}
          checked={route.state !== "waiting"}
          disabled={!now}
          onChange={(on) => void turn(label, on)}
        />
      )}
    </li>
  );
}

const others = (route: NodeRoute) =>
  route.others.length > 0
    ? t.also(
        route.others
          .slice(0, 3)
          .map((node) => printable(node.givenName))
          .join(", "),
      )
    : t.only;

function useSwitch(node: Node, route: NodeRoute) {
  const writes = useNodeWrites();
  const status = useStatus();
  const name = printable(node.givenName);
  return async (label: string, on: boolean) => {
    try {
      await writes.switchRoute(node, route.prefixes, on);
      const exit = on ? t.exitOn(name) : t.exitOff(name);
      status.done(route.exit ? exit : on ? t.approved(label, name) : t.disabled(label, name), () =>
        writes.switchRoute(node, route.prefixes, !on).then(
          () => status.done(t.undone(name)),
          (error) => status.failed(t.failed(name), error),
        ),
      );
    } catch (error) {
      status.failed(t.failed(name), error);
    }
  };
}
